//! K-append: quantise new tokens into their slots.

use std::ops::Range;

use super::isa::{Isa, Kernel};
use super::page::Pages;
use super::row::{FloatRow, QuantisedRow, quantise};
use super::simd::Simd;
use super::slots::Slots;
use super::workers::{Shared, Workers};
use crate::error::Result;
use crate::request::KAppendRequest;

/// Tokens that one thread takes at a time.
const GRAIN: usize = 32;

pub fn k_append(workers: &Workers, isa: Isa, request: &KAppendRequest) -> Result<()> {
    // SAFETY: the caller's arrays outlive the call.
    let slots = unsafe { Slots::checked("slots", request.slots, request.num_tokens, &request.cache)? };
    let pages = Pages::new(&request.cache, request.layer);
    // SAFETY: each token's record is written by the one thread that has its index (that no slot stands twice in a
    // call is the caller's contract), and the inputs are only read.
    let shared = unsafe { Shared::new((request, slots, pages)) };
    workers.for_ranges(slots.len(), GRAIN, |tokens| {
        let &(request, slots, pages) = shared.get();
        isa.run(Append { request, slots, pages, tokens });
    });
    Ok(())
}

struct Append<'a> {
    request: &'a KAppendRequest,
    slots: Slots,
    pages: Pages,
    tokens: Range<usize>,
}

impl Kernel for Append<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let request = self.request;
        let mut row = FloatRow::ZERO;
        let mut quantised = QuantisedRow::ZERO;
        for token in self.tokens {
            let Some(slot) = self.slots.get(token) else { continue };
            let content = request.content.ptr.wrapping_offset(token as isize * request.content.stride as isize);
            let rope = request.rope.ptr.wrapping_offset(token as isize * request.rope.stride as isize);
            // SAFETY: the request's tensors hold `num_tokens` rows, and the slot was checked to lie in the cache.
            unsafe {
                row.widen(simd, request.dtype, content, rope);
                quantise(simd, &row, &mut quantised);
                self.pages.slot(slot).write(&quantised);
            }
        }
    }
}
