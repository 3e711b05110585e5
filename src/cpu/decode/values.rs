//! Adds a tile's values, in their quantised weights, to the rows' outputs.

use std::ops::Range;

use super::scratch::{Row, TileRow, Work};
use super::state::RowOutput;
use crate::cpu::isa::Kernel;
use crate::cpu::row::FloatRow;
use crate::cpu::simd::{Simd, VALUE_ROWS};
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
        let rows_at_once = if self.spoiled { 1 } else { VALUE_ROWS };
        for dim in (0..CONTENT_DIM).step_by(S::LANES * S::VALUE_VECTORS) {
            for first in self.rows.clone().step_by(rows_at_once) {
                let rows = first..self.rows.end.min(first + rows_at_once);
                let last = &self.work.rows[rows.end - 1];
                let tile = &self.work.tile[..self.tokens.min(last.attended - self.first_token)];
                let rows = BlockRows {
                    rows: &self.work.rows[rows.clone()],
                    weights: &self.work.weights[rows.clone()],
                    outputs: &mut self.outputs[rows],
                };
                match S::VALUE_VECTORS {
                    2 => rows.add::<S, 2>(simd, tile, dim),
                    _ => rows.add::<S, 4>(simd, tile, dim),
                }
            }
        }
    }
}

/// Up to `VALUE_ROWS` rows.
struct BlockRows<'a> {
    rows: &'a [Row],
    weights: &'a [TileRow],
    outputs: &'a mut [RowOutput],
}

impl BlockRows<'_> {
    #[inline(always)]
    fn add<S: Simd, const VECTORS: usize>(self, simd: S, tile: &[FloatRow], dim: usize) {
        match self.rows.len() {
            1 => self.block::<S, 1, VECTORS>(simd, tile, dim),
            2 => self.block::<S, 2, VECTORS>(simd, tile, dim),
            3 => self.block::<S, 3, VECTORS>(simd, tile, dim),
            4 => self.block::<S, 4, VECTORS>(simd, tile, dim),
            5 => self.block::<S, 5, VECTORS>(simd, tile, dim),
            _ => self.block::<S, 6, VECTORS>(simd, tile, dim),
        }
    }

    /// `ROWS` rows and the dims from `dim` on, over all tokens. The dims of the tile stay in the first-level cache
    /// for the next rows.
    // Plain indices: through iterators over arrays the sums end up in memory instead of registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn block<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S, tile: &[FloatRow], dim: usize) {
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
                    let at = outputs[r].as_mut_ptr().add(dim + j * S::LANES);
                    simd.store(at, simd.mul_add(sums[r][j], weight_scale, simd.mul(simd.load(at), decay)));
                }
            }
        }
    }
}
