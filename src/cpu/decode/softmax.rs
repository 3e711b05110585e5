//! Online softmax, with each token's scale folded into its probability and the product quantised to E4M3.

use std::ops::Range;

use super::scratch::{Row, TileRow, Work};
use super::state::RowSum;
use crate::cpu::isa::Kernel;
use crate::cpu::simd::Simd;
use crate::layout::TILE_TOKENS;
use crate::num::e4m3;

/// Turns the rows' products into quantised weights, and brings their sums up to date.
pub struct Softmax<'a> {
    pub rows: Range<usize>,
    pub first_token: usize,
    pub tokens: usize,
    pub work: &'a mut Work,
    pub sums: &'a mut [RowSum],
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Work { rows, weights, tile_scales, .. } = self.work;
        for i in self.rows {
            let tokens = self.tokens.min(rows[i].attended - self.first_token);
            update(simd, tokens, tile_scales, &mut weights[i], &mut rows[i], &mut self.sums[i]);
        }
    }
}

/// One row, which attends to the tile's first `tokens` tokens. What the other columns hold is never computed with:
/// they may be NaN.
#[inline(always)]
fn update<S: Simd>(simd: S, tokens: usize, scales: &TileRow, weights: &mut TileRow, row: &mut Row, sum: &mut RowSum) {
    let logit_factor = simd.splat(row.logit_factor);
    let none = simd.splat(f32::NEG_INFINITY);
    let zero = simd.splat(0.0);
    let scale = scales.0.as_ptr();
    let weight = weights.0.as_mut_ptr();
    let columns = || (0..TILE_TOKENS).step_by(S::LANES);

    let mut largest = none;
    for at in columns() {
        // SAFETY: columns are in the 64 of both arrays, whose length is a multiple of LANES.
        unsafe {
            let logit = simd.mul(simd.mul(simd.load(weight.add(at)), logit_factor), simd.load(scale.add(at)));
            let logit = simd.select_first(tokens.saturating_sub(at), logit, none);
            simd.store(weight.add(at), logit);
            largest = simd.max(logit, largest);
        }
    }
    let max = sum.max.max(simd.max_lane(largest));
    row.decay = if max > sum.max { (f64::from(sum.max) - f64::from(max)).exp() as f32 } else { 1.0 };
    sum.max = max;

    let max = simd.splat(max);
    let (mut total, mut largest) = (zero, zero);
    for at in columns() {
        // SAFETY: as above.
        unsafe {
            let attended = tokens.saturating_sub(at);
            let probability = simd.exp(simd.sub(simd.load(weight.add(at)), max));
            let probability = simd.select_first(attended, probability, zero);
            total = simd.add(total, probability);
            let fused = simd.mul(probability, simd.load(scale.add(at)));
            let fused = simd.select_first(attended, fused, zero);
            simd.store(weight.add(at), fused);
            largest = simd.max(fused, largest);
        }
    }
    sum.sum = sum.sum * f64::from(row.decay) + f64::from(simd.sum(total));

    let weight_scale = simd.max_lane(largest) / e4m3::MAX;
    row.weight_scale = if weight_scale == 0.0 { 1.0 } else { weight_scale };
    let divisor = simd.splat(row.weight_scale);
    for at in columns() {
        // SAFETY: as above; of pairs, two stand in the place of one float, which has been read.
        unsafe {
            let rounded = simd.round_e4m3(simd.div(simd.load(weight.add(at)), divisor));
            if S::PAIRS {
                simd.store_u16(weight.cast::<u16>().add(at), simd.shr::<16>(rounded));
            } else {
                simd.store(weight.add(at), rounded);
            }
        }
    }
}
