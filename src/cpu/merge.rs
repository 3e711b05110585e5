//! Merge: partial (output, log-sum-exp) pairs of the same rows into one.

use std::ops::Range;

use super::address::ByHead;
use super::isa::{Isa, Kernel};
use super::row::{narrow, widen};
use super::simd::Simd;
use super::workers::{Shared, Workers};
use crate::layout::CONTENT_DIM;
use crate::request::MergeRequest;

/// Rows that one thread takes at a time.
const GRAIN: usize = 16;

pub fn merge(workers: &Workers, isa: Isa, request: &MergeRequest) {
    // SAFETY: each output row is written by the one thread that has its index, and the parts are only read.
    let shared = unsafe { Shared::new(request) };
    let rows = request.num_tokens.max(0) as usize * request.num_heads as usize;
    workers.for_ranges(rows, GRAIN, |rows| isa.run(Merge { request: shared.get(), rows }));
}

struct Merge<'a> {
    request: &'a MergeRequest,
    rows: Range<usize>,
}

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let request = self.request;
        let mut sum = [0f32; CONTENT_DIM];
        let mut part = [0f32; CONTENT_DIM];
        for row in self.rows {
            let (token, head) =
                ((row / request.num_heads as usize) as i64, (row % request.num_heads as usize) as i64);
            let (largest, total) = weigh(request, token, head);
            sum.fill(0.0);
            for i in 0..i64::from(request.num_parts) {
                let Some(lse) = part_lse(request, i, token, head) else { continue };
                let weight = simd.splat(((lse - largest).exp() / total) as f32);
                let from = request.parts.at(token, head).wrapping_offset((i * request.parts_part_stride) as isize);
                // SAFETY: the parts hold a row of 512 for every part, token and head; chunks are LANES long.
                unsafe {
                    widen(simd, request.parts_dtype, from, &mut part);
                    for (sum, part) in sum.chunks_exact_mut(S::LANES).zip(part.chunks_exact(S::LANES)) {
                        let v = simd.mul_add(weight, simd.load(part.as_ptr()), simd.load(sum.as_ptr()));
                        simd.store(sum.as_mut_ptr(), v);
                    }
                }
            }
            // SAFETY: the outputs that are not NULL have a row for every token and head.
            unsafe {
                narrow(simd, request.out_dtype, &sum, 1.0, request.out.at(token, head));
                if !request.lse.ptr.is_null() {
                    let lse = if total == 0.0 { f32::NEG_INFINITY } else { (largest + total.ln()) as f32 };
                    request.lse.at(token, head).write_unaligned(lse);
                }
            }
        }
    }
}

/// The largest log-sum-exp of a row's parts, and the sum of their weights relative to it: 0 when all are empty.
fn weigh(request: &MergeRequest, token: i64, head: i64) -> (f64, f64) {
    let parts = || (0..i64::from(request.num_parts)).filter_map(|i| part_lse(request, i, token, head));
    let largest = parts().fold(f64::NEG_INFINITY, f64::max);
    (largest, parts().map(|lse| (lse - largest).exp()).sum())
}

/// A part's log-sum-exp; none when it attended to nothing.
fn part_lse(request: &MergeRequest, part: i64, token: i64, head: i64) -> Option<f64> {
    let at = request.parts_lse.at(token, head).wrapping_byte_offset((part * request.parts_lse_part_stride) as isize);
    // SAFETY: the caller's tensor has an entry for every part, token and head.
    let lse = unsafe { at.read_unaligned() };
    (!lse.is_infinite()).then_some(lse.into())
}
