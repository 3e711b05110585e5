//! IEEE half precision.

/// The NaN that conversions write.
pub const NAN: u16 = 0x7FFF;

/// Nearest even, overflowing to infinity; a NaN becomes the canonical one: PTX `cvt.rn.f16.f32`.
pub fn encode(value: f32) -> u16 {
    if value.is_nan() { NAN } else { half::f16::from_f32(value).to_bits() }
}

/// Exact.
pub fn decode(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_and_nan_is_canonical() {
        for bits in 0..=u16::MAX {
            let value = decode(bits);
            assert_eq!(encode(value), if value.is_nan() { NAN } else { bits });
        }
    }

    #[test]
    fn encode_rounds_to_nearest_even_and_overflows_to_infinity() {
        assert_eq!(encode(1.0 + 2f32.powi(-11)), 0x3C00);
        assert_eq!(encode(1.0 + 3.0 * 2f32.powi(-11)), 0x3C02);
        assert_eq!(encode(65519.0), 0x7BFF);
        assert_eq!(encode(65520.0), 0x7C00);
        assert_eq!(encode(2f32.powi(-25)), 0);
        assert_eq!(encode(1.5 * 2f32.powi(-25)), 1);
    }
}
