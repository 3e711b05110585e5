//! What the kernels write, run on the host through the whole CUDA backend: the CPU backend's bytes.

use std::ptr;

use snapmla::cpu::Cpu;
use snapmla::cuda::Cuda;
use snapmla::request::{
    Dtype, FetchRequest, FetchSource, HeadRows, KAppendRequest, MergeRequest, QQuantRequest, RecordsCopyRequest, Rows,
};

use crate::data::{LAYERS, Memory, PAGES, Random, cache, fill_row, first_difference, full_cache, read};
use crate::emulation::with_emulated_kernels;
use crate::harness::{Fake, cuda};

const NO_STREAM: *mut std::os::raw::c_void = ptr::null_mut();
const DTYPES: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::F32];

/// The outcome of `call` on memory that starts as `memory` does, by CUDA and by the CPU.
fn both(memory: &mut Memory, by_cuda: impl FnOnce(), by_cpu: impl FnOnce()) -> (Memory, Memory) {
    let before = memory.clone();
    by_cuda();
    let cuda = memory.clone();
    memory.0.copy_from_slice(&before.0);
    by_cpu();
    (cuda, memory.clone())
}

fn open(fake: &Fake) -> (Cuda, Cpu) {
    fake.emulate();
    (cuda(), Cpu::new(1).unwrap())
}

with_emulated_kernels! {
    fn k_append(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(1);
        for dtype in DTYPES {
            for (page_size, shift) in [(64, 0), (8, 0), (24, 1), (64, 1)] {
                let (mut memory, view) = cache(page_size);
                let stride = 576 * dtype.bytes() + shift * dtype.bytes();
                let mut slots = random.shuffled(view.num_slots());
                slots.truncate(37);
                slots[3] = -1;
                slots[9] = i64::MIN;
                let mut input = Memory::new((slots.len() + 1) * stride);
                let (content, rope) = (shift * dtype.bytes(), (shift + 512) * dtype.bytes());
                for row in 0..slots.len() {
                    let at = row * stride;
                    fill_row(&mut input, &mut random, dtype, row, at + content, at + rope);
                }
                let request = KAppendRequest {
                    cache: view,
                    layer: 1,
                    dtype,
                    num_tokens: slots.len() as i64,
                    content: Rows { ptr: input.at(content), stride: stride as i64 },
                    rope: Rows { ptr: input.at(rope), stride: stride as i64 },
                    slots: slots.as_ptr(),
                };
                let (by_cuda, by_cpu) = both(
                    &mut memory,
                    || cuda.k_append(&request, NO_STREAM).unwrap(),
                    || cpu.k_append(&request).unwrap(),
                );
                assert_eq!(first_difference(&by_cuda, &by_cpu), None, "{dtype:?}, page_size {page_size}");
                assert_ne!(first_difference(&by_cuda, &Memory::new(by_cuda.bytes().len())), None);
            }
        }
    }

    fn k_append_writes_nothing_outside_the_cache(fake) {
        let (cuda, _) = open(fake);
        let (memory, view) = cache(64);
        let mut input = Memory::new(1152);
        for slot in [view.num_slots(), i64::MAX, -1] {
            let request = KAppendRequest {
                cache: view,
                layer: 0,
                dtype: Dtype::Bf16,
                num_tokens: 1,
                content: Rows { ptr: input.at(0), stride: 1152 },
                rope: Rows { ptr: input.at(1024), stride: 1152 },
                slots: &slot,
            };
            cuda.k_append(&request, NO_STREAM).unwrap();
            assert_eq!(first_difference(&memory, &Memory::new(memory.bytes().len())), None);
        }
    }

    fn q_quant(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(2);
        let (tokens, heads) = (3, 20);
        for dtype in DTYPES {
            for shift in [0, 1] {
                // Content [tokens][heads][512], rope [heads][tokens][64].
                let (head, token) = ((512 + shift) * dtype.bytes(), heads * (512 + shift) * dtype.bytes());
                let (rope_token, rope_head) = ((64 + shift) * dtype.bytes(), tokens * (64 + shift) * dtype.bytes());
                let mut content = Memory::new(tokens * token);
                let mut rope = Memory::new(heads * rope_head);
                for row in 0..tokens * heads {
                    let mut pair = Memory::new(576 * dtype.bytes());
                    fill_row(&mut pair, &mut random, dtype, row, 0, 512 * dtype.bytes());
                    let (t, h) = (row / heads, row % heads);
                    let from = pair.bytes();
                    let n = 512 * dtype.bytes();
                    // SAFETY: the row lies inside.
                    unsafe {
                        content.at(t * token + h * head).copy_from_nonoverlapping(from.as_ptr(), n);
                        let to = rope.at(t * rope_token + h * rope_head);
                        to.copy_from_nonoverlapping(from[n..].as_ptr(), 64 * dtype.bytes());
                    }
                }
                let rows = tokens * heads;
                let mut out = Memory::new(rows * 644 + 64);
                let request = QQuantRequest {
                    dtype,
                    num_tokens: tokens as i64,
                    num_heads: heads,
                    content: HeadRows { ptr: content.at(0), token_stride: token as i64, head_stride: head as i64 },
                    rope: HeadRows { ptr: rope.at(0), token_stride: rope_token as i64, head_stride: rope_head as i64 },
                    q_content: out.at(0),
                    q_rope: out.at(rows * 512),
                    q_scale: out.at(rows * 640).cast(),
                };
                let (by_cuda, by_cpu) = both(
                    &mut out,
                    || cuda.q_quant(&request, NO_STREAM).unwrap(),
                    || cpu.q_quant(&request).unwrap(),
                );
                assert_eq!(first_difference(&by_cuda, &by_cpu), None, "{dtype:?}, shift {shift}");
            }
        }
    }

    fn records_copy(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(3);
        for page_size in [8, 24, 64] {
            let (mut memory, view) = full_cache(page_size, &mut random);
            let slots = random.shuffled(view.num_slots());
            let (src, dst) = slots.split_at(slots.len() / 2);
            let mut dst = dst.to_vec();
            dst[1] = -5;
            for (first_layer, num_layers) in [(0, LAYERS), (1, 1)] {
                let request = RecordsCopyRequest {
                    cache: view,
                    first_layer,
                    num_layers,
                    num_records: src.len() as i64,
                    src_slots: src.as_ptr(),
                    dst_slots: dst.as_ptr(),
                };
                let (by_cuda, by_cpu) = both(
                    &mut memory,
                    || cuda.records_copy(&request, NO_STREAM).unwrap(),
                    || cpu.records_copy(&request).unwrap(),
                );
                assert_eq!(first_difference(&by_cuda, &by_cpu), None, "page_size {page_size}");
            }
        }
    }

    fn fetch_by_slots(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(4);
        for dtype in DTYPES {
            for (page_size, shift, with_content, with_rope) in
                [(64, 0, true, true), (8, 1, true, true), (24, 0, false, true), (64, 0, true, false)]
            {
                let (_memory, view) = full_cache(page_size, &mut random);
                let mut slots = random.shuffled(view.num_slots());
                slots.truncate(45);
                slots[7] = -1;
                let stride = (576 + shift) * dtype.bytes();
                let mut out = Memory::new((slots.len() + 1) * stride);
                let (content, rope) = (out.at(shift * dtype.bytes()), out.at((shift + 512) * dtype.bytes()));
                let request = FetchRequest {
                    cache: view,
                    layer: 1,
                    dtype,
                    num_tokens: slots.len() as i64,
                    source: FetchSource::Slots(slots.as_ptr()),
                    content: Rows { ptr: if with_content { content } else { ptr::null_mut() }, stride: stride as i64 },
                    rope: Rows { ptr: if with_rope { rope } else { ptr::null_mut() }, stride: stride as i64 },
                };
                let (by_cuda, by_cpu) = both(
                    &mut out,
                    || cuda.fetch_dequant(&request, NO_STREAM).unwrap(),
                    || cpu.fetch_dequant(&request).unwrap(),
                );
                assert_eq!(first_difference(&by_cuda, &by_cpu), None, "{dtype:?}, page_size {page_size}");
            }
        }
    }

    fn fetch_by_block_table(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(5);
        for (batch, with_starts) in [(1usize, false), (3, true), (32, true), (33, false), (1100, true)] {
            let (_memory, view) = full_cache(8, &mut random);
            let max_pages = PAGES;
            let limit = (max_pages * view.page_size) as u64;
            let starts: Vec<i32> = (0..batch).map(|_| random.below(limit / 2) as i32).collect();
            // Every other sequence is empty; the first rows belong to none.
            let mut cu_tokens = vec![2i32];
            for sequence in 0..batch {
                let count = if sequence % 2 == 0 { random.below(limit / 2) as i32 % (2 + 20_000 / batch as i32) } else { 0 };
                cu_tokens.push(cu_tokens[sequence] + count);
            }
            let num_tokens = i64::from(cu_tokens[batch]) + 3;
            let table: Vec<i32> = (0..batch * (max_pages + 1)).map(|_| random.below(PAGES as u64) as i32).collect();
            let mut out = Memory::new(num_tokens as usize * 1152);
            let request = FetchRequest {
                cache: view,
                layer: 0,
                dtype: Dtype::Bf16,
                num_tokens,
                source: FetchSource::BlockTable {
                    block_table: Rows { ptr: table.as_ptr(), stride: 4 * (max_pages as i64 + 1) },
                    max_pages: max_pages as u32,
                    batch: batch as u32,
                    starts: if with_starts { starts.as_ptr() } else { ptr::null() },
                    cu_tokens: cu_tokens.as_ptr(),
                },
                content: Rows { ptr: out.at(0), stride: 1152 },
                rope: Rows { ptr: out.at(1024), stride: 1152 },
            };
            let (by_cuda, by_cpu) = both(
                &mut out,
                || cuda.fetch_dequant(&request, NO_STREAM).unwrap(),
                || cpu.fetch_dequant(&request).unwrap(),
            );
            assert_eq!(first_difference(&by_cuda, &by_cpu), None, "batch {batch}");
        }
    }

    /// The launch cannot report a page that is none; the rows show it.
    fn fetch_from_nowhere_is_nan(fake) {
        let (cuda, _) = open(fake);
        let (_memory, view) = full_cache(8, &mut Random(6));
        let table = [PAGES as i32, -1, i32::MIN, 0];
        let (starts, cu_tokens) = ([-1], [0, 33]);
        let mut out = Memory::new(33 * 1024);
        let request = FetchRequest {
            cache: view,
            layer: 0,
            dtype: Dtype::Bf16,
            num_tokens: 33,
            source: FetchSource::BlockTable {
                block_table: Rows { ptr: table.as_ptr(), stride: 16 },
                max_pages: 4,
                batch: 1,
                starts: starts.as_ptr(),
                cu_tokens: cu_tokens.as_ptr(),
            },
            content: Rows { ptr: out.at(0), stride: 1024 },
            rope: Rows { ptr: ptr::null_mut(), stride: 128 },
        };
        cuda.fetch_dequant(&request, NO_STREAM).unwrap();
        for (row, bytes) in out.bytes().chunks_exact(1024).enumerate() {
            let nan = bytes.chunks_exact(2).all(|pair| pair == [0xFF, 0x7F]);
            // Tokens -1 to 31: before the start, three pages that are none, and eight tokens of page 0.
            assert_eq!(nan, row < 25 || row - 25 == 13, "row {row}");
        }
    }

    fn merge(fake) {
        let (cuda, cpu) = open(fake);
        let mut random = Random(7);
        let (tokens, heads) = (2usize, 5usize);
        for (num_parts, parts_dtype, out_dtype, shift) in [
            (1usize, Dtype::F32, Dtype::F32, 0usize),
            (2, Dtype::Bf16, Dtype::Bf16, 0),
            (3, Dtype::F16, Dtype::F32, 1),
            (4, Dtype::F32, Dtype::Bf16, 0),
            (5, Dtype::Bf16, Dtype::F32, 0),
            (9, Dtype::F32, Dtype::F16, 1),
            (33, Dtype::Bf16, Dtype::F16, 0),
            (70, Dtype::F32, Dtype::F32, 0),
        ] {
            let row = (512 + shift) * parts_dtype.bytes();
            let mut parts = Memory::new((num_parts * tokens * heads + 1) * row);
            let mut lse = Vec::new();
            for part in 0..num_parts {
                for index in 0..tokens * heads {
                    // Row 0 is empty everywhere; empty parts hold NaN.
                    let empty = index == 0 || (part + index) % 4 == 1;
                    let mark = [f32::NEG_INFINITY, f32::INFINITY][(part + index) / 4 % 2];
                    lse.push(if empty { mark } else { random.number() * 20.0 });
                    for dim in 0..512 {
                        let value = if empty { f32::NAN } else { random.number() };
                        let at = (part * tokens * heads + index) * row + (shift + dim) * parts_dtype.bytes();
                        parts.write(at, parts_dtype, value);
                    }
                }
            }
            let out_row = (512 + shift) * out_dtype.bytes();
            let mut out = Memory::new((tokens * heads + 1) * out_row);
            let mut merged_lse = vec![0f32; tokens * heads];
            let request = MergeRequest {
                num_parts: num_parts as u32,
                num_heads: heads as u32,
                num_tokens: tokens as i64,
                parts_dtype,
                out_dtype,
                parts: HeadRows {
                    ptr: parts.at(shift * parts_dtype.bytes()),
                    token_stride: (heads * row) as i64,
                    head_stride: row as i64,
                },
                parts_part_stride: (tokens * heads * row) as i64,
                parts_lse: HeadRows { ptr: lse.as_ptr(), token_stride: 4 * heads as i64, head_stride: 4 },
                parts_lse_part_stride: (4 * tokens * heads) as i64,
                out: HeadRows {
                    ptr: out.at(shift * out_dtype.bytes()),
                    token_stride: (heads * out_row) as i64,
                    head_stride: out_row as i64,
                },
                lse: HeadRows { ptr: merged_lse.as_mut_ptr(), token_stride: 4 * heads as i64, head_stride: 4 },
            };
            let mut cuda_lse = Vec::new();
            let (by_cuda, by_cpu) = both(
                &mut out,
                || {
                    cuda.merge(&request, NO_STREAM).unwrap();
                    cuda_lse = merged_lse.clone();
                },
                || cpu.merge(&request).unwrap(),
            );
            for (cuda, cpu) in cuda_lse.iter().zip(&merged_lse) {
                assert!(cuda == cpu || (cuda - cpu).abs() < 1e-5, "{num_parts} parts: lse {cuda} and {cpu}");
            }
            let tolerance = match out_dtype {
                Dtype::F32 => 2e-6,
                Dtype::F16 => 1e-3,
                Dtype::Bf16 => 8e-3,
            };
            let bytes = out_dtype.bytes();
            for (i, (cuda, cpu)) in by_cuda.bytes().chunks_exact(bytes).zip(by_cpu.bytes().chunks_exact(bytes)).enumerate()
            {
                let [cuda, cpu] = [cuda, cpu].map(|x| read(out_dtype, x));
                let close = (cuda - cpu).abs() <= tolerance * cpu.abs().max(0.1);
                assert!(cuda.to_bits() == cpu.to_bits() || close, "{num_parts} parts, element {i}: {cuda} and {cpu}");
            }
        }
    }
}
