//! Decodes a tile's records, once for all rows.

use super::Call;
use super::numbers::{put_content, put_rope};
use super::scratch::Work;
use super::sequence::Sequence;
use crate::cpu::isa::Kernel;
use crate::cpu::page::Record;
use crate::cpu::row::{FloatRow, QuantisedRow};
use crate::cpu::simd::Simd;
use crate::layout::{CHUNK_BYTES, CONTENT_BLOCKS, ROW_BYTES, swizzle};
use crate::num::e4m3;

/// Chunks in a row of 128 bytes.
const CHUNKS: usize = ROW_BYTES / CHUNK_BYTES;

pub struct LoadTile<'a> {
    pub call: &'a Call<'a>,
    pub sequence: &'a Sequence,
    pub first_token: usize,
    pub tokens: usize,
    pub work: &'a mut Work,
}

impl Kernel for LoadTile<'_> {
    /// Whether some content is NaN.
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let Self { call, sequence, first_token, tokens, work } = self;
        let mut spoiled = false;
        let mut cursor = call.keys.cursor(sequence.index, first_token);
        for token in 0..tokens {
            let record = cursor.next();
            // SAFETY: the sequence's tokens were checked to lie in the cache.
            unsafe {
                spoiled |= load_record(simd, &record, &mut work.tile[token]);
                work.tile_scales.0[token] = record.scale();
            }
        }
        spoiled
    }
}

/// A record's numbers, not times its scale. True when some of its content is NaN.
///
/// # Safety
/// The record lies in live memory that nobody writes meanwhile.
#[inline(always)]
unsafe fn load_record<S: Simd>(simd: S, record: &Record, to: &mut FloatRow) -> bool {
    let mut nan = false;
    for block in 0..CONTENT_BLOCKS {
        let from = record.content_block(block);
        for position in (0..CHUNKS).step_by(2) {
            // The swizzle is its own inverse: it also says which chunk stands at a position. Chunks 2i and 2i + 1 stand
            // side by side, in this order or the other.
            let chunk = swizzle(record.row(), position);
            let (group, swapped) = ((block * CHUNKS + chunk) / 2, chunk % 2 == 1);
            // SAFETY: positions are in a row of 128 bytes, and groups two of the 32 chunks.
            nan |= unsafe { put_content(simd, from.add(position * CHUNK_BYTES), swapped, to, group) };
        }
    }
    if nan && !S::PAIRS {
        // The vector code leaves NaN codes as any number.
        let mut row = QuantisedRow::ZERO;
        // SAFETY: as the caller vouches.
        unsafe { record.read(&mut row) };
        for (to, &code) in to.0.iter_mut().zip(&row.content) {
            *to = e4m3::decode(code);
        }
    }
    for position in 0..CHUNKS {
        let chunk = swizzle(record.row(), position);
        // SAFETY: positions are in a row of 128 bytes, and chunks one of 8.
        unsafe { put_rope(simd, record.rope().add(position * CHUNK_BYTES), to, chunk) };
    }
    nan
}
