//! Caches, random numbers, and the definitions that the backend is tested against.

use crate::cpu::Cpu;
use crate::cpu::isa::Isa;
use crate::cpu::workers::Workers;
use crate::layout::{self, CONTENT_DIM, ROPE_DIM};
use crate::num::{bf16, e4m3, f16};
use crate::request::{CacheView, Dtype, Rows};

pub fn cpu(threads: u32, isa: Isa) -> Cpu {
    Cpu { workers: Workers::new(threads).unwrap(), isa }
}

/// A small generator (splitmix64): the tests need numbers that are the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Nearly normal, mean 0 and deviation 1.
    pub fn normal(&mut self) -> f32 {
        (0..4).map(|_| self.uniform() - 0.5).sum::<f32>() * 3f32.sqrt()
    }

    pub fn normals(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.normal()).collect()
    }

    /// Any bit pattern: infinities, NaN and denormals among them.
    pub fn any_float(&mut self) -> f32 {
        f32::from_bits(self.bits() as u32)
    }
}

/// Numbers in a tensor's bytes.
pub fn to_bytes(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    match dtype {
        Dtype::Bf16 => values.iter().flat_map(|&v| bf16::encode(v).to_ne_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|&v| f16::encode(v).to_ne_bytes()).collect(),
        Dtype::F32 => values.iter().flat_map(|&v| v.to_ne_bytes()).collect(),
    }
}

pub fn from_bytes(dtype: Dtype, bytes: &[u8]) -> Vec<f32> {
    let half = |b: &[u8]| u16::from_ne_bytes([b[0], b[1]]);
    match dtype {
        Dtype::Bf16 => bytes.chunks(2).map(|b| bf16::decode(half(b))).collect(),
        Dtype::F16 => bytes.chunks(2).map(|b| f16::decode(half(b))).collect(),
        Dtype::F32 => bytes.chunks(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect(),
    }
}

/// A record, or a quantised query row, by the definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub content: Vec<u8>,
    pub rope: Vec<u16>,
    pub scale: u32,
}

impl Record {
    pub fn quantised(content: &[f32], rope: &[f32]) -> Self {
        // f32::max lets a signalling NaN through on some machines.
        let largest = |row: &[f32]| row.iter().fold(0f32, |m, v| if v.abs() > m { v.abs() } else { m });
        let mut scale = largest(content) / 448.0;
        if scale == 0.0 {
            scale = 1.0;
        }
        scale = scale.max(largest(rope) * 2f32.powi(-60));
        Self {
            content: content.iter().map(|c| e4m3::encode(c / scale)).collect(),
            rope: rope.iter().map(|r| bf16::encode(r / scale)).collect(),
            scale: scale.to_bits(),
        }
    }

    pub fn random(random: &mut Random) -> Self {
        Self::quantised(&random.normals(CONTENT_DIM), &random.normals(ROPE_DIM))
    }

    pub fn scale(&self) -> f32 {
        f32::from_bits(self.scale)
    }

    pub fn content_times(&self, factor: f32) -> Vec<f32> {
        self.content.iter().map(|&c| e4m3::decode(c) * factor).collect()
    }

    pub fn rope_times(&self, factor: f32) -> Vec<f32> {
        self.rope.iter().map(|&r| bf16::decode(r) * factor).collect()
    }
}

/// A cache with its memory. Gaps between pages hold 0xA5, which nothing may change.
pub struct Cache {
    memory: Vec<u128>,
    pub view: CacheView,
}

pub const GAP: u8 = 0xA5;

impl Cache {
    /// Pages whose every byte is 0xFF: NaN content, NaN rope, NaN scales.
    pub fn poisoned(page_size: usize, num_pages: usize, num_layers: usize) -> Self {
        let page_stride = (layout::page_bytes(page_size) + 48).next_multiple_of(16);
        let layer_stride = page_stride * num_pages + 32;
        let mut cache = Self {
            memory: vec![u128::from_ne_bytes([GAP; 16]); layer_stride * num_layers / 16],
            view: CacheView {
                memory: std::ptr::null_mut(),
                page_size,
                num_pages: num_pages as i64,
                num_layers,
                page_stride: page_stride as i64,
                layer_stride: layer_stride as i64,
            },
        };
        cache.view.memory = cache.memory.as_mut_ptr().cast();
        for layer in 0..num_layers {
            for page in 0..num_pages {
                let from = layer * layer_stride + page * page_stride;
                cache.bytes_mut()[from..from + layout::page_bytes(page_size)].fill(0xFF);
            }
        }
        cache
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the vector's own memory; any bytes are u8.
        unsafe { std::slice::from_raw_parts(self.view.memory, self.memory.len() * 16) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.view.memory, self.memory.len() * 16) }
    }

    fn page(&self, layer: usize, slot: usize) -> (usize, usize) {
        let CacheView { page_size, page_stride, layer_stride, .. } = self.view;
        (layer * layer_stride as usize + slot / page_size * page_stride as usize, slot % page_size)
    }

    pub fn record(&self, layer: usize, slot: usize) -> Record {
        let (page, row) = self.page(layer, slot);
        let n = self.view.page_size;
        let byte = |at: usize| self.bytes()[page + at];
        let content = |i: usize| byte(layout::content_chunk(n, row, i / 16) + i % 16);
        let rope = |i: usize| {
            let at = layout::rope_chunk(n, row, i / 8) + i % 8 * 2;
            u16::from_ne_bytes([byte(at), byte(at + 1)])
        };
        let scale = layout::scale(n, row);
        Record {
            content: (0..CONTENT_DIM).map(content).collect(),
            rope: (0..ROPE_DIM).map(rope).collect(),
            scale: u32::from_ne_bytes(std::array::from_fn(|i| byte(scale + i))),
        }
    }

    pub fn put(&mut self, layer: usize, slot: usize, record: &Record) {
        let (page, row) = self.page(layer, slot);
        let n = self.view.page_size;
        let bytes = &mut self.bytes_mut()[page..];
        for (i, &c) in record.content.iter().enumerate() {
            bytes[layout::content_chunk(n, row, i / 16) + i % 16] = c;
        }
        for (i, &r) in record.rope.iter().enumerate() {
            let at = layout::rope_chunk(n, row, i / 8) + i % 8 * 2;
            bytes[at..at + 2].copy_from_slice(&r.to_ne_bytes());
        }
        let at = layout::scale(n, row);
        bytes[at..at + 4].copy_from_slice(&record.scale.to_ne_bytes());
    }
}

/// Rows of `len` numbers, `stride` bytes apart.
pub fn rows(bytes: &[u8], stride: usize) -> Rows<*const u8> {
    Rows { ptr: bytes.as_ptr(), stride: stride as i64 }
}

pub fn rows_mut(bytes: &mut [u8], stride: usize) -> Rows<*mut u8> {
    Rows { ptr: bytes.as_mut_ptr(), stride: stride as i64 }
}

pub const DTYPES: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::F32];
