//! Q-quant: absorbed queries to the quantised form that decode takes.

use std::ops::Range;

use super::address::ByHead;
use super::isa::{Isa, Kernel};
use super::row::{FloatRow, QuantisedRow, quantise};
use super::simd::Simd;
use super::workers::{Shared, Workers};
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::request::QQuantRequest;

/// Rows that one thread takes at a time.
const GRAIN: usize = 32;

pub fn q_quant(workers: &Workers, isa: Isa, request: &QQuantRequest) {
    // SAFETY: each output row is written by the one thread that has its index, and the inputs are only read.
    let shared = unsafe { Shared::new(request) };
    let rows = request.num_tokens.max(0) as usize * request.num_heads;
    workers.for_ranges(rows, GRAIN, |rows| isa.run(Quantise { request: shared.get(), rows }));
}

struct Quantise<'a> {
    request: &'a QQuantRequest,
    rows: Range<usize>,
}

impl Kernel for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let request = self.request;
        let mut row = FloatRow::ZERO;
        let mut quantised = QuantisedRow::ZERO;
        for i in self.rows {
            let (token, head) = ((i / request.num_heads) as i64, (i % request.num_heads) as i64);
            let content = request.content.at(token, head);
            let rope = request.rope.at(token, head);
            // SAFETY: the request's tensors hold a row for every token and head; outputs are packed by row.
            unsafe {
                row.widen(simd, request.dtype, content, rope);
                quantise(simd, &row, &mut quantised);
                let to_content = request.q_content.add(i * CONTENT_DIM);
                to_content.copy_from_nonoverlapping(quantised.content.as_ptr(), CONTENT_DIM);
                let to_rope = request.q_rope.add(i * ROPE_DIM * 2);
                to_rope.copy_from_nonoverlapping(quantised.rope.as_ptr().cast(), ROPE_DIM * 2);
                request.q_scale.add(i).write_unaligned(quantised.scale);
            }
        }
    }
}
