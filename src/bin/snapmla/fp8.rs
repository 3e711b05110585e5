//! E4M3 as the cache and the quantised queries hold it.

/// The value of a byte; NaN for 0x7F and 0xFF.
pub fn e4m3(byte: u8) -> f32 {
    let exponent = (byte >> 3 & 15) as i32;
    let mantissa = (byte & 7) as f32;
    let magnitude = match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    };
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::e4m3;

    #[test]
    fn landmarks() {
        assert_eq!(e4m3(0x7E), 448.0);
        assert_eq!(e4m3(0x38), 1.0);
        assert_eq!(e4m3(0x01), 1.0 / 512.0);
        assert_eq!(e4m3(0x88), -1.0 / 64.0);
        assert!(e4m3(0x7F).is_nan());
    }
}
