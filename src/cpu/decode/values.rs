//! Adds a tile's values, in their quantised weights, to the rows' outputs.

use std::ops::Range;

use super::blocks::even_blocks;
use super::scratch::{Row, TileRow, Work};
use super::state::RowOutput;
use crate::cpu::isa::Kernel;
use crate::cpu::row::FloatRow;
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
            for rows in even_blocks(self.rows.clone(), most) {
                let (block, tile) = self.block(rows);
                match block.rows.len() {
                    1 => block.add::<S, 1, 4>(simd, tile, dim),
                    2 => block.add::<S, 2, 4>(simd, tile, dim),
                    _ => block.add::<S, FEW, 4>(simd, tile, dim),
                }
            }
        }
    }

    #[inline(always)]
    fn add_many<S: Simd>(mut self, simd: S) {
        for dim in (0..CONTENT_DIM).step_by(S::LANES * 2) {
            for rows in even_blocks(self.rows.clone(), S::BLOCK_ROWS) {
                let (block, tile) = self.block(rows);
                match block.rows.len() {
                    1 => block.add::<S, 1, 2>(simd, tile, dim),
                    2 => block.add::<S, 2, 2>(simd, tile, dim),
                    3 => block.add::<S, 3, 2>(simd, tile, dim),
                    4 => block.add::<S, 4, 2>(simd, tile, dim),
                    5 => block.add::<S, 5, 2>(simd, tile, dim),
                    6 => block.add::<S, 6, 2>(simd, tile, dim),
                    7 => block.add::<S, 7, 2>(simd, tile, dim),
                    8 => block.add::<S, 8, 2>(simd, tile, dim),
                    9 => block.add::<S, 9, 2>(simd, tile, dim),
                    10 => block.add::<S, 10, 2>(simd, tile, dim),
                    11 => block.add::<S, 11, 2>(simd, tile, dim),
                    _ => block.add::<S, 12, 2>(simd, tile, dim),
                }
            }
        }
    }

    /// Some rows, and the tokens that the last of them attends to.
    #[inline(always)]
    fn block(&mut self, rows: Range<usize>) -> (Block<'_>, &[FloatRow]) {
        let last = &self.work.rows[rows.end - 1];
        let tile = &self.work.tile[..self.tokens.min(last.attended - self.first_token)];
        let block = Block {
            rows: &self.work.rows[rows.clone()],
            weights: &self.work.weights[rows.clone()],
            outputs: &mut self.outputs[rows],
        };
        (block, tile)
    }
}

/// Up to `BLOCK_ROWS` rows.
struct Block<'a> {
    rows: &'a [Row],
    weights: &'a [TileRow],
    outputs: &'a mut [RowOutput],
}

impl Block<'_> {
    /// `ROWS` rows and the dims from `dim` on, over all tokens. The dims of the tile stay in the first-level cache
    /// for the next rows.
    // Plain indices: through iterators over arrays the sums end up in memory instead of registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn add<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S, tile: &[FloatRow], dim: usize) {
        if ROWS > S::BLOCK_ROWS {
            return;
        }
        let Self { rows, weights, outputs } = self;
        assert!(rows.len() >= ROWS && weights.len() >= ROWS && outputs.len() >= ROWS && tile.len() <= TILE_TOKENS);
        let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
        for (token, value) in tile.iter().enumerate() {
            let mut v = [simd.splat(0.0); VECTORS];
            for j in 0..VECTORS {
                // SAFETY: the dims from `dim` on are VECTORS * LANES of the 512.
                v[j] = unsafe { simd.load(value.0.as_ptr().add(dim + j * S::LANES)) };
            }
            for r in 0..ROWS {
                let weight = simd.splat(weights[r].0[token]);
                for j in 0..VECTORS {
                    sums[r][j] = simd.mul_add(weight, v[j], sums[r][j]);
                }
            }
        }
        for r in 0..ROWS {
            let (decay, weight_scale) = (simd.splat(rows[r].decay), simd.splat(rows[r].weight_scale));
            for j in 0..VECTORS {
                // SAFETY: as above, in the row's output.
                unsafe {
                    let at = outputs[r].0.as_mut_ptr().add(dim + j * S::LANES);
                    simd.store(at, simd.mul_add(sums[r][j], weight_scale, simd.mul(simd.load(at), decay)));
                }
            }
        }
    }
}
