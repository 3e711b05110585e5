//! How far a result may be off, in one place. DESIGN, section 8: "Tighten to what is measured, never loosen."

/// "relative L2 of a call <= 4e-2 ... where values have no common sign (E4M3's rounding of P is 2.6 % rms a term and
/// does not average down there)".
pub const CALL_L2: f64 = 4e-2;
/// "... and of any row <= 7e-2".
pub const ROW_L2: f64 = 7e-2;
/// "<= 3.5e-3 of a call for flat attention over values with a mean, at any length from 1,024 to 1M".
pub const FLAT_MEAN_L2: f64 = 3.5e-3;
/// "|dLSE| <= 1e-4 for flat logits".
pub const FLAT_LSE: f64 = 1e-4;
/// "and <= 6e-3 of the largest |logit| else".
pub const LSE_OF_LOGIT: f64 = 6e-3;

/// "The CPU backend, whose sums are f32, is held to 3e-2".
pub const CPU_CALL_L2: f64 = 3e-2;
/// "and 1e-5": of max(1, the largest |logit|).
pub const CPU_LSE: f64 = 1e-5;

/// Merge is arithmetic on f32: this much of the largest weighted part.
pub const MERGE: f64 = 1e-6;
/// One rounding to the output's type, beside the largest element of the row: half a unit in the last place, doubled.
pub const BF16_ROUNDING: f64 = 1.0 / 256.0;
pub const F16_ROUNDING: f64 = 1.0 / 2048.0;

/// What a decode call's values look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// No common sign: [`CALL_L2`] and [`ROW_L2`].
    Mixed,
    /// Flat attention over values with a mean: [`FLAT_MEAN_L2`].
    FlatMean,
}

/// The limits that bind one call on one backend.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub call: f64,
    pub row: f64,
    pub lse: f64,
}

pub fn limits(gate: Gate, cpu: bool, largest_logit: f64) -> Limits {
    let call = match gate {
        Gate::FlatMean => FLAT_MEAN_L2,
        Gate::Mixed if cpu => CPU_CALL_L2,
        Gate::Mixed => CALL_L2,
    };
    let lse = if cpu { CPU_LSE * largest_logit.max(1.0) } else { FLAT_LSE.max(LSE_OF_LOGIT * largest_logit) };
    Limits { call, row: ROW_L2, lse }
}
