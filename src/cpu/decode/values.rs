//! Adds a tile's values, in their quantised weights, to the rows' outputs.

use std::ops::Range;

use super::blocks::even_blocks;
use super::numbers::{self, multiply};
use super::scratch::{Pairs, Row, TileRow, Work};
use super::state::RowOutput;
use crate::cpu::isa::Kernel;
use crate::cpu::row::{FloatRow, ROW_DIM};
use crate::cpu::simd::Simd;
use crate::layout::{CONTENT_DIM, TILE_TOKENS};

pub struct Values<'a> {
    pub rows: Range<usize>,
    pub first_token: usize,
    pub tokens: usize,
    /// Some content of the tile is NaN.
    pub spoiled: bool,
    pub work: &'a mut Work,
    pub outputs: &'a mut [RowOutput],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // A token that a row does not attend to has weight 0, which changes nothing unless its content is NaN. Then
        // each row stops at its own last token.
        if self.spoiled {
            self.add_few(simd, 1);
        } else if self.rows.len() <= FEW {
            self.add_few(simd, FEW);
        } else {
            self.add_many(simd);
        }
    }
}

/// Rows for which a block takes more dims at once: it needs about eight independent sums to keep the multipliers busy.
const FEW: usize = 3;

impl Values<'_> {
    #[inline(always)]
    fn add_few<S: Simd>(mut self, simd: S, most: usize) {
        for dim in (0..CONTENT_DIM).step_by(S::LANES * 4) {
            self.pair_for_all::<S, 4>(simd, dim);
            for rows in even_blocks(self.rows.clone(), most) {
                let (block, values) = self.block::<S, 4>(simd, rows, dim);
                match block.rows.len() {
                    1 => block.add::<S, 1, 4>(simd, values, dim),
                    2 => block.add::<S, 2, 4>(simd, values, dim),
                    _ => block.add::<S, FEW, 4>(simd, values, dim),
                }
            }
        }
    }

    #[inline(always)]
    fn add_many<S: Simd>(mut self, simd: S) {
        for dim in (0..CONTENT_DIM).step_by(S::LANES * 2) {
            self.pair_for_all::<S, 2>(simd, dim);
            for rows in even_blocks(self.rows.clone(), S::BLOCK_ROWS) {
                let (block, values) = self.block::<S, 2>(simd, rows, dim);
                match block.rows.len() {
                    1 => block.add::<S, 1, 2>(simd, values, dim),
                    2 => block.add::<S, 2, 2>(simd, values, dim),
                    3 => block.add::<S, 3, 2>(simd, values, dim),
                    4 => block.add::<S, 4, 2>(simd, values, dim),
                    5 => block.add::<S, 5, 2>(simd, values, dim),
                    6 => block.add::<S, 6, 2>(simd, values, dim),
                    7 => block.add::<S, 7, 2>(simd, values, dim),
                    8 => block.add::<S, 8, 2>(simd, values, dim),
                    9 => block.add::<S, 9, 2>(simd, values, dim),
                    10 => block.add::<S, 10, 2>(simd, values, dim),
                    11 => block.add::<S, 11, 2>(simd, values, dim),
                    _ => block.add::<S, 12, 2>(simd, values, dim),
                }
            }
        }
    }

    /// Forms the pairs that all rows share, in a tile whose every value may be multiplied by 0.
    #[inline(always)]
    fn pair_for_all<S: Simd, const VECTORS: usize>(&mut self, simd: S, dim: usize) {
        if S::PAIRS && !self.spoiled {
            pair::<S, VECTORS>(simd, &self.work.tile[..self.tokens], dim, &mut self.work.pairs);
        }
    }

    /// Some rows, and the values from `dim` on of the tokens that the last of them attends to.
    #[inline(always)]
    fn block<S: Simd, const VECTORS: usize>(
        &mut self,
        simd: S,
        rows: Range<usize>,
        dim: usize,
    ) -> (Block<'_>, Tokens) {
        let last = &self.work.rows[rows.end - 1];
        let tile = &self.work.tile[..self.tokens.min(last.attended - self.first_token)];
        let values = if S::PAIRS {
            if self.spoiled {
                pair::<S, VECTORS>(simd, tile, dim, &mut self.work.pairs);
            }
            Tokens { from: self.work.pairs.0.as_ptr(), stride: VECTORS * S::LANES, count: tile.len().div_ceil(2) }
        } else {
            Tokens { from: tile.as_ptr().cast::<f32>().wrapping_add(dim), stride: ROW_DIM, count: tile.len() }
        };
        let block = Block {
            rows: &self.work.rows[rows.clone()],
            weights: &self.work.weights[rows.clone()],
            outputs: &mut self.outputs[rows],
        };
        (block, values)
    }
}

/// Pairs of the tile's tokens: `VECTORS` vectors of each, for the dims from `dim` on. A last token without a partner
/// gets zeros beside it.
#[inline(always)]
fn pair<S: Simd, const VECTORS: usize>(simd: S, tile: &[FloatRow], dim: usize, to: &mut Pairs) {
    for (i, tokens) in tile.chunks(2).enumerate() {
        let even = numbers::pairs(&tokens[0]);
        let odd = numbers::pairs(tokens.get(1).unwrap_or(&FloatRow::ZERO));
        for j in (0..VECTORS).step_by(2) {
            let at = dim + j * S::LANES;
            // SAFETY: the dims from `dim` on are VECTORS * LANES of the 512; there is room for 32 pairs of four vectors.
            unsafe {
                let to = to.0.as_mut_ptr().add((i * VECTORS + j) * S::LANES);
                let [first, second] = simd.interleave(even.add(at), odd.add(at));
                simd.store(to, first);
                simd.store(to.add(S::LANES), second);
            }
        }
    }
}

/// Vectors of some dims of tokens, or of pairs of tokens.
#[derive(Clone, Copy)]
struct Tokens {
    from: *const f32,
    /// Floats between tokens or pairs.
    stride: usize,
    /// At most 64 tokens or 32 pairs.
    count: usize,
}

/// Up to `BLOCK_ROWS` rows.
struct Block<'a> {
    rows: &'a [Row],
    weights: &'a [TileRow],
    outputs: &'a mut [RowOutput],
}

impl Block<'_> {
    /// `ROWS` rows and the dims from `dim` on, over all tokens. The values of these dims stay in the first-level cache
    /// for the next rows.
    // Plain indices: through iterators over arrays the sums end up in memory instead of registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn add<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S, values: Tokens, dim: usize) {
        if ROWS > S::BLOCK_ROWS {
            return;
        }
        let Self { rows, weights, outputs } = self;
        assert!(rows.len() >= ROWS && weights.len() >= ROWS && outputs.len() >= ROWS && values.count <= TILE_TOKENS);
        let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
        for token in 0..values.count {
            let mut v = [simd.splat(0.0); VECTORS];
            for j in 0..VECTORS {
                // SAFETY: each of the `count` tokens has VECTORS vectors.
                v[j] = unsafe { simd.load(values.from.add(token * values.stride + j * S::LANES)) };
            }
            for r in 0..ROWS {
                let weight = simd.splat(weights[r].0[token]);
                for j in 0..VECTORS {
                    sums[r][j] = multiply(simd, weight, v[j], sums[r][j]);
                }
            }
        }
        for r in 0..ROWS {
            let (decay, weight_scale) = (simd.splat(rows[r].decay), simd.splat(rows[r].weight_scale));
            for j in 0..VECTORS {
                // SAFETY: the dims from `dim` on are VECTORS * LANES of the 512.
                unsafe {
                    let at = outputs[r].0.as_mut_ptr().add(dim + j * S::LANES);
                    simd.store(at, simd.mul_add(sums[r][j], weight_scale, simd.mul(simd.load(at), decay)));
                }
            }
        }
    }
}
