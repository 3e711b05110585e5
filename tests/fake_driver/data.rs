//! Rows and caches for `results.rs`, in host memory.

use snapmla::cpu::Cpu;
use snapmla::request::{CacheView, Dtype, KAppendRequest, Rows};

/// Numbers that look random and are the same every time.
pub struct Random(pub u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 8) % n
    }

    /// Between -1 and 1, sparser towards the ends.
    pub fn number(&mut self) -> f32 {
        let sum: f32 = (0..4).map(|_| self.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5).sum();
        sum * 0.5
    }

    pub fn shuffled(&mut self, n: i64) -> Vec<i64> {
        let mut order: Vec<i64> = (0..n).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

/// 16-byte aligned memory, filled with a pattern that says what was not written.
#[derive(Clone)]
pub struct Memory(pub Vec<u128>);

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self(vec![0xA5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5; bytes.div_ceil(16)])
    }

    pub fn at(&mut self, offset: usize) -> *mut u8 {
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: any bits are bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 16) }
    }

    pub fn write(&mut self, offset: usize, dtype: Dtype, value: f32) {
        let at = self.at(offset);
        // SAFETY: the tests' offsets lie inside.
        unsafe {
            match dtype {
                Dtype::Bf16 => at.cast::<u16>().write_unaligned((value.to_bits() >> 16) as u16),
                Dtype::F16 => at.cast::<u16>().write_unaligned(snapmla::num::f16::encode(value)),
                Dtype::F32 => at.cast::<f32>().write_unaligned(value),
            }
        }
    }
}

pub fn first_difference(a: &Memory, b: &Memory) -> Option<usize> {
    a.bytes().iter().zip(b.bytes()).position(|(a, b)| a != b)
}

/// Rows of content and rope: ordinary ones, and one of every kind that has gone wrong somewhere.
pub fn fill_row(memory: &mut Memory, random: &mut Random, dtype: Dtype, row: usize, content: usize, rope: usize) {
    let largest = match dtype {
        Dtype::F16 => 60_000.0,
        Dtype::Bf16 | Dtype::F32 => f32::from_bits(0x7F7F_0000),
    };
    let (content_scale, rope_scale): (f32, f32) = match row % 16 {
        0 => (0.0, 0.0),
        1 => (0.0, 1.0),
        2 => (1e-38, 1e-38),
        3 => (1e-41, 1.0),
        4 => (largest, 1.0),
        5 => (1e-30, largest),
        6 => (1e-3, largest),
        7 => (1e-20, 1e-25),
        _ => (10f32.powi(random.below(7) as i32 - 3), 1.0),
    };
    for i in 0..512 {
        let value = match (row % 16, i) {
            (8, 100) => f32::NAN,
            (9, 511) => f32::INFINITY,
            (10, 3) => -0.0,
            (11, 200) => 1000.0,
            (12, _) => [448.0, 0.5, -0.0, 17.0, 0.001953125, 0.0009765625, 1.0625, 1.1875][i % 8],
            (13, _) => f32::NAN,
            _ => random.number() * content_scale,
        };
        memory.write(content + i * dtype.bytes(), dtype, value);
    }
    for i in 0..64 {
        let value = match (row % 16, i) {
            (14, 5) => f32::NAN,
            (15, 63) => f32::NEG_INFINITY,
            _ => random.number() * rope_scale,
        };
        memory.write(rope + i * dtype.bytes(), dtype, value);
    }
}

pub const LAYERS: usize = 2;
pub const PAGES: usize = 5;

/// Pages with a gap behind each, both layers inside.
pub fn cache(page_size: usize) -> (Memory, CacheView) {
    let page_bytes = (644 * page_size).next_multiple_of(16);
    let (layer_stride, page_stride) = (page_bytes + 32, LAYERS * (page_bytes + 32) + 48);
    let mut memory = Memory::new(PAGES * page_stride);
    let view = CacheView {
        memory: memory.at(0),
        page_size,
        num_pages: PAGES as i64,
        num_layers: LAYERS,
        page_stride: page_stride as i64,
        layer_stride: layer_stride as i64,
    };
    (memory, view)
}

/// A cache whose every record was appended.
pub fn full_cache(page_size: usize, random: &mut Random) -> (Memory, CacheView) {
    let (memory, view) = cache(page_size);
    let n = view.num_slots() as usize;
    let mut input = Memory::new(n * 1152);
    for row in 0..n {
        fill_row(&mut input, random, Dtype::Bf16, row, row * 1152, row * 1152 + 1024);
    }
    let slots: Vec<i64> = (0..n as i64).collect();
    for layer in 0..LAYERS {
        let request = KAppendRequest {
            cache: view,
            layer,
            dtype: Dtype::Bf16,
            num_tokens: n as i64,
            content: Rows { ptr: input.at(0), stride: 1152 },
            rope: Rows { ptr: input.at(1024), stride: 1152 },
            slots: slots.as_ptr(),
        };
        Cpu::new(1).unwrap().k_append(&request).unwrap();
    }
    (memory, view)
}

/// One number of `dtype`.
pub fn read(dtype: Dtype, bytes: &[u8]) -> f32 {
    match dtype {
        Dtype::F32 => f32::from_le_bytes(bytes.try_into().expect("4 bytes")),
        Dtype::Bf16 => snapmla::num::bf16::decode(u16::from_le_bytes(bytes.try_into().expect("2 bytes"))),
        Dtype::F16 => snapmla::num::f16::decode(u16::from_le_bytes(bytes.try_into().expect("2 bytes"))),
    }
}
