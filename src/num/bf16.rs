//! bfloat16.

/// The NaN that conversions write.
pub const NAN: u16 = 0x7FFF;

/// Nearest even; a NaN becomes the canonical one: PTX `cvt.rn.bf16.f32`.
pub fn encode(value: f32) -> u16 {
    if value.is_nan() { NAN } else { half::bf16::from_f32(value).to_bits() }
}

/// Exact.
pub fn decode(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
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
    fn encode_rounds_to_nearest_even() {
        assert_eq!(encode(f32::from_bits(0x3F80_8000)), 0x3F80);
        assert_eq!(encode(f32::from_bits(0x3F81_8000)), 0x3F82);
        assert_eq!(encode(f32::from_bits(0x3F80_8001)), 0x3F81);
        assert_eq!(encode(f32::MAX), 0x7F80);
    }
}
