//! Decodes a tile's records to floats, once for all rows.

use super::Call;
use super::scratch::Work;
use super::sequence::Sequence;
use crate::cpu::isa::Kernel;
use crate::cpu::page::Record;
use crate::cpu::row::{FloatRow, QuantisedRow};
use crate::cpu::simd::Simd;
use crate::layout::{CHUNK_BYTES, CONTENT_BLOCKS, CONTENT_DIM, ROW_BYTES, swizzle};
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
    let (content, rope) = to.0.split_at_mut(CONTENT_DIM);
    let mut nan = false;
    for block in 0..CONTENT_BLOCKS {
        let from = record.content_block(block);
        let to = content[block * ROW_BYTES..][..ROW_BYTES].as_mut_ptr();
        for position in (0..CHUNKS).step_by(2) {
            // The swizzle is its own inverse: it also says which chunk stands at a position.
            let low = swizzle(record.row(), position) * CHUNK_BYTES;
            let high = swizzle(record.row(), position + 1) * CHUNK_BYTES;
            // SAFETY: positions are in a row of 128 bytes, and chunks in a block of 128 numbers.
            nan |= unsafe { simd.decode_e4m3(from.add(position * CHUNK_BYTES), to.add(low), to.add(high)) };
        }
    }
    if nan {
        // The vector code leaves NaN codes as any number.
        let mut row = QuantisedRow::ZERO;
        // SAFETY: as the caller vouches.
        unsafe { record.read(&mut row) };
        for (to, &code) in content.iter_mut().zip(&row.content) {
            *to = e4m3::decode(code);
        }
    }
    for position in 0..CHUNKS {
        let chunk = swizzle(record.row(), position);
        // SAFETY: positions are in a row of 128 bytes, and chunks of 8 in 64 numbers.
        unsafe { simd.widen_bf16(record.rope().add(position * CHUNK_BYTES), rope.as_mut_ptr().add(chunk * 8)) };
    }
    nan
}
