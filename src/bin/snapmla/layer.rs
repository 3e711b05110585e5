//! A synthetic attention layer with the shapes of a trained one.
//!
//! As the paper measured them: content lies within ±10, and its channels have means of their own; rope reaches
//! ±1000, a few channels standing far out. Rope vectors are drawn first and rotated by their position afterwards, so
//! the slow channels that stand out keep their sign over thousands of tokens. Queries are scaled so that a head's
//! logits spread by its own temperature, from nearly flat attention in the first head to sharp in the last.

use rayon::prelude::*;

use crate::rng::Rng;

pub const CONTENT: usize = 512;
pub const ROPE: usize = 64;
pub const RECORD_BYTES: usize = snapmla::abi::types::SNAPMLA_RECORD_BYTES as usize;
/// 1 / sqrt(192): DeepSeek's, without YaRN.
pub const SOFTMAX_SCALE: f32 = 0.072_168_78;

const CONTENT_LIMIT: f32 = 10.0;
const ROPE_LIMIT: f32 = 1000.0;
/// Pairs of rope channels that stand out; the last pairs turn slowest.
const OUTLIER_PAIRS: [(usize, f32); 4] = [(30, 600.0), (27, 350.0), (22, 200.0), (13, 120.0)];

/// Rows of one tensor pair: content [n][512] and rope [n][64].
#[derive(Default, Clone)]
pub struct Rows {
    pub content: Vec<f32>,
    pub rope: Vec<f32>,
}

impl Rows {
    fn zeros(n: usize) -> Self {
        Self { content: vec![0.0; n * CONTENT], rope: vec![0.0; n * ROPE] }
    }

    pub fn row(&self, index: usize) -> (&[f32], &[f32]) {
        (&self.content[index * CONTENT..][..CONTENT], &self.rope[index * ROPE..][..ROPE])
    }
}

pub struct Layer {
    seed: u64,
    heads: usize,
    softmax_scale: f32,
    content_mean: Vec<f32>,
    content_sigma: Vec<f32>,
    rope_mean: Vec<f32>,
    rope_sigma: Vec<f32>,
}

impl Layer {
    pub fn new(seed: u64, heads: usize, softmax_scale: f32) -> Self {
        let mut rng = Rng::new(seed, 0, 0);
        let content_mean = (0..CONTENT).map(|_| 0.5 * rng.normal()).collect();
        let content_sigma = (0..CONTENT).map(|_| (0.4 * rng.normal()).exp()).collect();
        let mut rope_mean: Vec<f32> = (0..ROPE).map(|_| 4.0 * rng.normal()).collect();
        let mut rope_sigma: Vec<f32> = (0..ROPE).map(|_| 8.0 * (0.5 * rng.normal()).exp()).collect();
        for (pair, size) in OUTLIER_PAIRS {
            for channel in [2 * pair, 2 * pair + 1] {
                rope_mean[channel] = size * if rng.bits() & 1 == 0 { 1.0 } else { -1.0 };
                rope_sigma[channel] = 0.12 * size;
            }
        }
        Self { seed, heads, softmax_scale, content_mean, content_sigma, rope_mean, rope_sigma }
    }

    /// Tokens at positions 0..n.
    pub fn tokens(&self, n: usize) -> Rows {
        self.fill(n, |position, content, rope| self.token(position, content, rope))
    }

    /// Queries [n][heads] of the tokens at `first_position` and after.
    pub fn queries(&self, first_position: usize, n: usize) -> Rows {
        self.fill(n * self.heads, |row, content, rope| {
            self.query(first_position + row / self.heads, row % self.heads, content, rope)
        })
    }

    fn fill(&self, n: usize, row: impl Fn(usize, &mut [f32], &mut [f32]) + Sync) -> Rows {
        let mut rows = Rows::zeros(n);
        rows.content
            .par_chunks_mut(CONTENT)
            .zip(rows.rope.par_chunks_mut(ROPE))
            .enumerate()
            .for_each(|(index, (content, rope))| row(index, content, rope));
        rows
    }

    fn token(&self, position: usize, content: &mut [f32], rope: &mut [f32]) {
        let mut rng = Rng::new(self.seed, 1, position as u64);
        let loudness = (0.3 * rng.normal()).exp();
        for (i, x) in content.iter_mut().enumerate() {
            *x = self.content_mean[i] + loudness * self.content_sigma[i] * rng.normal();
            *x = x.clamp(-CONTENT_LIMIT, CONTENT_LIMIT);
        }
        for (i, x) in rope.iter_mut().enumerate() {
            *x = self.rope_mean[i] + self.rope_sigma[i] * rng.normal();
        }
        rotate(position, rope);
        for x in rope {
            *x = x.clamp(-ROPE_LIMIT, ROPE_LIMIT);
        }
    }

    fn query(&self, position: usize, head: usize, content: &mut [f32], rope: &mut [f32]) {
        let mut rng = Rng::new(self.seed, 2, (position * self.heads + head) as u64);
        let temperature = 0.5 * 6f32.powf(head as f32 / (self.heads.max(2) - 1) as f32);
        let content_power: f32 = self.content_sigma.iter().map(|s| s * s).sum();
        // Content and rope share it equally.
        let part = temperature * std::f32::consts::FRAC_1_SQRT_2;
        let content_gain = part / (self.softmax_scale * content_power.sqrt());
        for x in content {
            *x = content_gain * rng.normal();
        }
        // A model that learns a loud key channel learns quiet queries for it.
        let rope_gain = part / (self.softmax_scale * (ROPE as f32).sqrt());
        for (i, x) in rope.iter_mut().enumerate() {
            *x = rope_gain * rng.normal() / self.rope_mean[i].hypot(self.rope_sigma[i]);
        }
        rotate(position, rope);
    }
}

/// RoPE: turns each pair of channels by the position times the pair's frequency.
fn rotate(position: usize, row: &mut [f32]) {
    for (pair, xy) in row.chunks_exact_mut(2).enumerate() {
        let angle = position as f64 * 10_000f64.powf(-2.0 * pair as f64 / ROPE as f64);
        let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
        (xy[0], xy[1]) = (xy[0] * cos - xy[1] * sin, xy[0] * sin + xy[1] * cos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_papers_ranges() {
        let rows = Layer::new(1, 4, 0.07).tokens(256);
        let largest = |x: &[f32]| x.iter().fold(0f32, |m, v| m.max(v.abs()));
        assert!(largest(&rows.content) > 5.0 && largest(&rows.content) <= CONTENT_LIMIT);
        assert!(largest(&rows.rope) > 700.0 && largest(&rows.rope) <= ROPE_LIMIT);
    }

    #[test]
    fn rotation_keeps_the_length() {
        let mut row = vec![1.0f32; ROPE];
        rotate(12345, &mut row);
        let power: f32 = row.iter().map(|x| x * x).sum();
        assert!((power - 64.0).abs() < 1e-3);
    }
}
