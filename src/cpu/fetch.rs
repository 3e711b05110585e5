//! Fetch-dequant: records back to floats, rounded once.

use std::ops::Range;

use super::isa::{Isa, Kernel};
use super::page::{Pages, Record};
use super::row::{FloatRow, QuantisedRow, decode_row, narrow};
use super::simd::Simd;
use super::slots::Slots;
use super::table::{BlockTable, prefix_sum};
use super::workers::{Shared, Workers};
use crate::error::{Error, Result};
use crate::layout::CONTENT_DIM;
use crate::request::{FetchRequest, FetchSource};

/// Rows that one thread takes at a time.
const GRAIN: usize = 32;

pub fn fetch_dequant(workers: &Workers, isa: Isa, request: &FetchRequest) -> Result<()> {
    let source = Source::checked(request)?;
    let rows = source.rows();
    // SAFETY: each output row is written by the one thread that has its index, and the cache is only read.
    let shared = unsafe { Shared::new((request, source)) };
    workers.for_ranges(rows.len(), GRAIN, |range| {
        let (request, source) = shared.get();
        isa.run(Fetch { request, source, rows: rows.start + range.start..rows.start + range.end });
    });
    Ok(())
}

/// A request's source whose every slot or page has been checked to lie in the cache.
enum Source {
    Slots(Slots),
    Table { table: BlockTable, starts: *const i32, cu_tokens: *const i32, batch: usize },
}

impl Source {
    fn checked(request: &FetchRequest) -> Result<Self> {
        match request.source {
            FetchSource::Slots(slots) => {
                // SAFETY: the caller's array outlives the call.
                unsafe { Slots::checked("slots", slots, request.num_tokens, &request.cache) }.map(Source::Slots)
            }
            FetchSource::BlockTable { block_table, max_pages, batch, starts, cu_tokens } => {
                let table = BlockTable::new(block_table, max_pages, &request.cache);
                let batch = batch as usize;
                let source = Source::Table { table, starts, cu_tokens, batch };
                for sequence in 0..batch {
                    check_sequence(&table, sequence, starts, cu_tokens)?;
                }
                let end = source.rows().end as i64;
                if end > request.num_tokens {
                    return Err(Error::invalid(format!(
                        "num_tokens {} is less than {end} = cu_tokens[{batch}]",
                        request.num_tokens
                    )));
                }
                Ok(source)
            }
        }
    }

    /// The output rows that get written.
    fn rows(&self) -> Range<usize> {
        match *self {
            Source::Slots(slots) => 0..slots.len(),
            Source::Table { batch: 0, .. } => 0..0,
            Source::Table { cu_tokens, batch, .. } => {
                // Checked not to be negative nor to decrease.
                prefix_sum(cu_tokens, 0) as usize..prefix_sum(cu_tokens, batch) as usize
            }
        }
    }

    /// The record of an output row; none where the caller says skip. `sequence` is the last row's, to search from.
    fn record(&self, pages: &Pages, row: usize, sequence: &mut usize) -> Option<Record> {
        match *self {
            Source::Slots(slots) => slots.get(row).map(|slot| pages.slot(slot)),
            Source::Table { table, starts, cu_tokens, .. } => {
                while prefix_sum(cu_tokens, *sequence + 1) as usize <= row {
                    *sequence += 1;
                }
                let start = start(starts, *sequence) as usize;
                let token = start + row - prefix_sum(cu_tokens, *sequence) as usize;
                let page = table.page(*sequence, token / pages.page_size());
                Some(pages.record(page.into(), token % pages.page_size()))
            }
        }
    }

    /// The sequence of an output row.
    fn sequence(&self, row: usize) -> usize {
        match *self {
            Source::Slots(_) => 0,
            Source::Table { cu_tokens, batch, .. } => {
                let (mut low, mut high) = (0, batch);
                while low + 1 < high {
                    let middle = usize::midpoint(low, high);
                    if prefix_sum(cu_tokens, middle) as usize <= row { low = middle } else { high = middle }
                }
                low
            }
        }
    }
}

fn start(starts: *const i32, sequence: usize) -> i32 {
    if starts.is_null() {
        return 0;
    }
    // SAFETY: the caller's array has an entry for every sequence.
    unsafe { starts.add(sequence).read_unaligned() }
}

fn check_sequence(table: &BlockTable, sequence: usize, starts: *const i32, cu_tokens: *const i32) -> Result<()> {
    let (from, to) = (prefix_sum(cu_tokens, sequence), prefix_sum(cu_tokens, sequence + 1));
    if from < 0 || to < from {
        return Err(Error::invalid(format!(
            "cu_tokens[{sequence}] is {from} and the next {to}: they must start at 0 or more and never decrease"
        )));
    }
    let first = start(starts, sequence);
    if first < 0 {
        return Err(Error::invalid(format!("starts[{sequence}] is {first}, less than 0")));
    }
    table.check(sequence, first as usize..first as usize + (to - from) as usize)
}

struct Fetch<'a> {
    request: &'a FetchRequest,
    source: &'a Source,
    rows: Range<usize>,
}

impl Kernel for Fetch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let FetchRequest { content, rope, dtype, .. } = *self.request;
        let pages = Pages::new(&self.request.cache, self.request.layer);
        let mut quantised = QuantisedRow::ZERO;
        let mut row = FloatRow::ZERO;
        let mut sequence = self.source.sequence(self.rows.start);
        for i in self.rows {
            let Some(record) = self.source.record(&pages, i, &mut sequence) else { continue };
            // SAFETY: the source's records were checked to lie in the cache; the outputs that are not NULL have a
            // row for every index.
            unsafe {
                record.read(&mut quantised);
                decode_row(simd, &quantised, &mut row);
                let (from_content, from_rope) = row.0.split_at(CONTENT_DIM);
                if !content.ptr.is_null() {
                    let to = content.ptr.wrapping_offset(i as isize * content.stride as isize);
                    narrow(simd, dtype, from_content, quantised.scale, to);
                }
                if !rope.ptr.is_null() {
                    let to = rope.ptr.wrapping_offset(i as isize * rope.stride as isize);
                    narrow(simd, dtype, from_rope, quantised.scale, to);
                }
            }
        }
    }
}
