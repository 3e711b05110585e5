//! E4M3 (OCP "fn"): four exponent bits with bias 7, three mantissa bits, no infinity, largest value 448.

/// Largest finite value.
pub const MAX: f32 = 448.0;
/// Smallest normal value; below it values are multiples of 2^-9.
pub const MIN_NORMAL: f32 = 0.015_625;
/// The NaN that conversions write. 0xFF is one as well.
pub const NAN: u8 = 0x7F;
/// A float whose unit in the last place is E4M3's smallest step: adding it rounds a small value to that step.
pub const SUBNORMAL_MAGIC: f32 = 16_384.0;

/// Nearest even, saturating at 448 for infinities too: PTX `cvt.rn.satfinite.e4m3x2.f32`.
pub const fn encode(value: f32) -> u8 {
    if value.is_nan() {
        return NAN;
    }
    let bits = value.to_bits();
    let sign = (bits >> 24) as u8 & 0x80;
    let magnitude = f32::from_bits(bits & 0x7FFF_FFFF);
    let code = if magnitude >= MAX {
        0x7E
    } else if magnitude < MIN_NORMAL {
        (magnitude + SUBNORMAL_MAGIC).to_bits() - SUBNORMAL_MAGIC.to_bits()
    } else {
        let bits = magnitude.to_bits();
        ((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - (120 << 3)
    };
    sign | code as u8
}

/// The value of every code.
pub const DECODED: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = decode_code(code as u32);
        code += 1;
    }
    table
};

/// The value of `code`.
pub const fn decode(code: u8) -> f32 {
    DECODED[code as usize]
}

const fn decode_code(code: u32) -> f32 {
    let sign = (code & 0x80) << 24;
    let magnitude = code & 0x7F;
    let bits = if magnitude == 0x7F {
        0x7FC0_0000
    } else if magnitude < 8 {
        (magnitude as f32 * (1.0 / 512.0)).to_bits()
    } else {
        (magnitude << 20) + (120 << 23)
    };
    f32::from_bits(sign | bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a code by its definition, in float arithmetic.
    fn defined(code: u8) -> f64 {
        let exponent = i32::from(code >> 3 & 15);
        let mantissa = f64::from(code & 7);
        let magnitude = match (exponent, code & 7) {
            (15, 7) => f64::NAN,
            (0, _) => mantissa / 8.0 * 2f64.powi(-6),
            _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
        };
        if code & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// The nearest code by search; of two equally near, the even one.
    fn nearest(value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = f64::from(value.abs());
        let mut best = 0u8;
        for code in 0..0x7Fu8 {
            let (new, old) = ((defined(code) - magnitude).abs(), (defined(best) - magnitude).abs());
            if new < old || (new == old && code & 1 == 0) {
                best = code;
            }
        }
        sign | best
    }

    #[test]
    fn every_code_has_its_defined_value_and_comes_back() {
        for code in 0..=255u8 {
            let value = decode(code);
            if code & 0x7F == 0x7F {
                assert!(value.is_nan());
                assert_eq!(encode(value), NAN);
            } else {
                assert_eq!(f64::from(value), defined(code));
                assert_eq!(value.is_sign_negative(), code & 0x80 != 0);
                assert_eq!(encode(value), code);
            }
        }
    }

    #[test]
    fn encode_rounds_to_the_nearest_even_code() {
        // Every pair of neighbouring codes: the middle, and one step of f32 to both sides of it and of the codes.
        for code in 0..0x7Eu8 {
            let (low, high) = (decode(code), decode(code + 1));
            for value in [low, high, (low + high) / 2.0] {
                for value in [value.next_down(), value, value.next_up()] {
                    for value in [value, -value] {
                        assert_eq!(encode(value), nearest(value), "{value:e}");
                    }
                }
            }
        }
        // A lattice over all exponents, denormals included.
        for high in 0..=0xFFFFu32 {
            let value = f32::from_bits(high << 16 | high);
            if value.is_finite() {
                assert_eq!(encode(value), nearest(value.clamp(-MAX, MAX)), "{value:e}");
            }
        }
    }

    #[test]
    fn encode_saturates_and_has_one_nan() {
        assert_eq!(encode(f32::INFINITY), 0x7E);
        assert_eq!(encode(f32::NEG_INFINITY), 0xFE);
        assert_eq!(encode(f32::MAX), 0x7E);
        assert_eq!(encode(f32::from_bits(0xFFC0_0001)), NAN);
        assert_eq!(encode(f32::from_bits(0x7F80_0001)), NAN);
        assert_eq!(encode(-0.0), 0x80);
    }
}
