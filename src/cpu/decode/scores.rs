//! Products of queries and keys.

use std::ops::Range;

use super::blocks::even_blocks;
use super::numbers::{multiply, row_vectors};
use super::scratch::{TileRow, Work};
use crate::cpu::isa::Kernel;
use crate::cpu::row::FloatRow;
use crate::cpu::simd::Simd;

/// The tile is taken this many tokens at a time.
const STEP: usize = 4;

/// Fills the first `tokens` columns of the rows' weights with products; the columns up to the next multiple of 4 get
/// whatever the tile held before.
pub struct Scores<'a> {
    pub rows: Range<usize>,
    pub tokens: usize,
    pub work: &'a mut Work,
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Work { queries, tile, weights, .. } = self.work;
        let tile = &tile[..self.tokens.next_multiple_of(STEP)];
        for rows in even_blocks(self.rows, S::BLOCK_ROWS) {
            let (queries, weights) = (&queries[rows.clone()], &mut weights[rows]);
            // Few rows take more tokens at once: it needs about eight independent sums to keep the multipliers busy.
            match queries.len() {
                1 => block::<S, 1, 4>(simd, queries, tile, weights),
                2 => block::<S, 2, 4>(simd, queries, tile, weights),
                3 => block::<S, 3, 4>(simd, queries, tile, weights),
                4 => block::<S, 4, 2>(simd, queries, tile, weights),
                5 => block::<S, 5, 2>(simd, queries, tile, weights),
                6 => block::<S, 6, 2>(simd, queries, tile, weights),
                7 => block::<S, 7, 2>(simd, queries, tile, weights),
                8 => block::<S, 8, 2>(simd, queries, tile, weights),
                9 => block::<S, 9, 2>(simd, queries, tile, weights),
                10 => block::<S, 10, 2>(simd, queries, tile, weights),
                11 => block::<S, 11, 2>(simd, queries, tile, weights),
                _ => block::<S, 12, 2>(simd, queries, tile, weights),
            }
        }
    }
}

/// `ROWS` rows with every token of the tile. The rows' queries stay in the first-level cache, the tile streams by.
// Plain indices: through iterators over arrays the sums end up in memory instead of registers.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn block<S: Simd, const ROWS: usize, const TOKENS: usize>(
    simd: S,
    queries: &[FloatRow],
    tile: &[FloatRow],
    weights: &mut [TileRow],
) {
    if ROWS > S::BLOCK_ROWS {
        return;
    }
    assert!(queries.len() >= ROWS && weights.len() >= ROWS);
    for (step, keys) in tile.chunks_exact(TOKENS).enumerate() {
        let mut sums = [[simd.splat(0.0); TOKENS]; ROWS];
        for vector in 0..row_vectors::<S>() {
            let at = vector * S::LANES;
            let mut k = [simd.splat(0.0); TOKENS];
            for t in 0..TOKENS {
                // SAFETY: every row has that many vectors.
                k[t] = unsafe { simd.load(keys[t].0.as_ptr().add(at)) };
            }
            for r in 0..ROWS {
                // SAFETY: as above.
                let q = unsafe { simd.load(queries[r].0.as_ptr().add(at)) };
                for t in 0..TOKENS {
                    sums[r][t] = multiply(simd, q, k[t], sums[r][t]);
                }
            }
        }
        for r in (0..ROWS).step_by(4 / TOKENS) {
            // Four sums at a time: one row's, or two rows' (the last row's twice, if it is alone).
            let next = (r + 1).min(ROWS - 1);
            let (second, third) = if TOKENS == 4 { (sums[r], 2) } else { (sums[next], 0) };
            let of = simd.sum4([sums[r][0], sums[r][1], second[third], second[third + 1]]);
            let column = step * TOKENS;
            weights[r].0[column..][..2].copy_from_slice(&of[..2]);
            if TOKENS == 4 {
                weights[r].0[column + 2..][..2].copy_from_slice(&of[2..]);
            } else {
                weights[next].0[column..][..2].copy_from_slice(&of[2..]);
            }
        }
    }
}
