//! Number formats, written out plainly and independently of the library.

/// The floating-point element types of the ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Float {
    Bf16,
    F16,
    F32,
}

impl Float {
    pub const ALL: [Float; 3] = [Float::Bf16, Float::F16, Float::F32];

    pub fn bytes(self) -> usize {
        if self == Float::F32 { 4 } else { 2 }
    }

    pub fn code(self) -> u32 {
        use snapmla::abi::types::*;
        match self {
            Float::Bf16 => SNAPMLA_DTYPE_BF16,
            Float::F16 => SNAPMLA_DTYPE_F16,
            Float::F32 => SNAPMLA_DTYPE_F32,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Float::Bf16 => "bf16",
            Float::F16 => "f16",
            Float::F32 => "f32",
        }
    }

    /// Writes `x`, rounded to nearest even, at the start of `to`.
    pub fn put(self, x: f32, to: &mut [u8]) {
        match self {
            Float::Bf16 => to[..2].copy_from_slice(&bf16(x).to_le_bytes()),
            Float::F16 => to[..2].copy_from_slice(&f16(x).to_le_bytes()),
            Float::F32 => to[..4].copy_from_slice(&x.to_le_bytes()),
        }
    }

    /// The number at the start of `from`.
    pub fn get(self, from: &[u8]) -> f32 {
        match self {
            Float::Bf16 => from_bf16(u16::from_le_bytes([from[0], from[1]])),
            Float::F16 => half::f16::from_le_bytes([from[0], from[1]]).to_f32(),
            Float::F32 => f32::from_le_bytes([from[0], from[1], from[2], from[3]]),
        }
    }

    /// `x` after a round trip through this type.
    pub fn round(self, x: f32) -> f32 {
        let mut bytes = [0; 4];
        self.put(x, &mut bytes);
        self.get(&bytes)
    }
}

/// Nearest even; every NaN becomes 0x7FFF.
pub fn bf16(x: f32) -> u16 {
    if x.is_nan() {
        return 0x7FFF;
    }
    let bits = x.to_bits();
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Nearest even, infinity past the range; every NaN becomes 0x7FFF.
pub fn f16(x: f32) -> u16 {
    if x.is_nan() { 0x7FFF } else { half::f16::from_f32(x).to_bits() }
}

/// OCP E4M3 "fn": nearest even, saturating at ±448; every NaN becomes 0x7F.
pub fn e4m3(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7F;
    }
    let sign = (x.to_bits() >> 24) as u8 & 0x80;
    let size = x.abs().min(448.0);
    // Numbers below 2^-6 share its spacing of 2^-9.
    let exponent = ((size.to_bits() >> 23) as i32 - 127).max(-6);
    let steps = size * 2f32.powi(3 - exponent);
    // Adding and taking away 1.5 * 2^23 rounds a small number to an integer, ties to even.
    let steps = (steps + 12_582_912.0) - 12_582_912.0;
    sign | ((exponent + 6) as u8 * 8 + steps as u8)
}

/// The number that an E4M3 byte means.
pub const fn from_e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = ((byte >> 3 & 15) as i32, (byte & 7) as f32);
    if byte & 0x7F == 0x7F {
        return f32::NAN;
    }
    let mut size = if exponent == 0 { mantissa } else { 8.0 + mantissa };
    let mut octaves = if exponent == 0 { -9 } else { exponent - 10 };
    while octaves > 0 {
        size *= 2.0;
        octaves -= 1;
    }
    while octaves < 0 {
        size *= 0.5;
        octaves += 1;
    }
    if byte & 0x80 != 0 { -size } else { size }
}

/// [`from_e4m3`] of every byte.
pub static E4M3: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = from_e4m3(byte as u8);
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The finite non-negative numbers of E4M3, searched one by one for the nearest.
    fn nearest(x: f32) -> u8 {
        let distance = |code: u8| (f64::from(E4M3[code as usize]) - f64::from(x)).abs();
        let mut best = 0u8;
        for code in 1..0x7F {
            let closer = distance(code) < distance(best);
            if closer || (distance(code) == distance(best) && code % 2 == 0) {
                best = code;
            }
        }
        best
    }

    #[test]
    fn e4m3_rounds_as_a_search_does() {
        for code in 0..0x7Eu8 {
            let (low, high) = (E4M3[code as usize], E4M3[code as usize + 1]);
            let middle = (low + high) / 2.0;
            for x in [low, middle.next_down(), middle, middle.next_up(), high.next_down()] {
                assert_eq!(e4m3(x), nearest(x), "{x}");
                assert_eq!(e4m3(-x), nearest(x) | 0x80, "{x}");
            }
        }
    }

    #[test]
    fn e4m3_at_the_ends() {
        assert_eq!(from_e4m3(0x7E), 448.0);
        assert_eq!(from_e4m3(0x01), 2f32.powi(-9));
        assert_eq!(e4m3(f32::INFINITY), 0x7E);
        assert_eq!(e4m3(f32::NEG_INFINITY), 0xFE);
        assert_eq!(e4m3(465.0), 0x7E);
        assert_eq!(e4m3(-f32::NAN), 0x7F);
        assert_eq!(e4m3(-0.0), 0x80);
        assert_eq!(e4m3(f32::from_bits(1)), 0);
    }

    #[test]
    fn bf16_agrees_with_half() {
        for step in 0..1 << 20 {
            let x = f32::from_bits(step * 4093);
            if !x.is_nan() {
                assert_eq!(bf16(x), half::bf16::from_f32(x).to_bits());
            }
        }
        assert_eq!(bf16(-f32::NAN), 0x7FFF);
    }
}
