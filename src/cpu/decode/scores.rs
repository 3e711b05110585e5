//! Products of queries and keys.

use std::ops::Range;

use super::scratch::{TileRow, Work};
use crate::cpu::isa::Kernel;
use crate::cpu::row::{FloatRow, ROW_DIM};
use crate::cpu::simd::Simd;

/// Tokens in a register block.
const TOKENS: usize = 4;

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
        let tile = &tile[..self.tokens.next_multiple_of(TOKENS)];
        let rows = queries[self.rows.clone()].chunks(S::SCORE_ROWS);
        for (queries, weights) in rows.zip(weights[self.rows].chunks_mut(S::SCORE_ROWS)) {
            match queries.len() {
                1 => block::<S, 1>(simd, queries, tile, weights),
                2 => block::<S, 2>(simd, queries, tile, weights),
                3 => block::<S, 3>(simd, queries, tile, weights),
                4 => block::<S, 4>(simd, queries, tile, weights),
                5 => block::<S, 5>(simd, queries, tile, weights),
                _ => block::<S, 6>(simd, queries, tile, weights),
            }
        }
    }
}

/// `ROWS` rows with every token of the tile. The rows' queries stay in the first-level cache, the tile streams by.
// Plain indices: through iterators over arrays the sums end up in memory instead of registers.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn block<S: Simd, const ROWS: usize>(simd: S, queries: &[FloatRow], tile: &[FloatRow], weights: &mut [TileRow]) {
    assert!(queries.len() >= ROWS && weights.len() >= ROWS);
    for (column, keys) in tile.chunks_exact(TOKENS).enumerate() {
        let mut sums = [[simd.splat(0.0); TOKENS]; ROWS];
        for dim in (0..ROW_DIM).step_by(S::LANES) {
            let mut q = [simd.splat(0.0); ROWS];
            for r in 0..ROWS {
                // SAFETY: every row has ROW_DIM numbers, a multiple of LANES.
                q[r] = unsafe { simd.load(queries[r].0.as_ptr().add(dim)) };
            }
            for t in 0..TOKENS {
                // SAFETY: as above.
                let k = unsafe { simd.load(keys[t].0.as_ptr().add(dim)) };
                for r in 0..ROWS {
                    sums[r][t] = simd.mul_add(q[r], k, sums[r][t]);
                }
            }
        }
        for r in 0..ROWS {
            weights[r].0[column * TOKENS..][..TOKENS].copy_from_slice(&simd.sum4(sums[r]));
        }
    }
}
