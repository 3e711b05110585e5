//! Sequences of very different lengths, as a server has them: what a token costs there, against even sequences.

use indicatif::ProgressBar;
use serde::Serialize;

use super::clock::{Method, Timing};
use super::decode;
use super::pool::Pool;
use crate::engine::Engine;
use crate::failure::Result;
use crate::rng::Rng;

pub const BATCHES: [usize; 2] = [32, 128];
pub const HEADS: [usize; 3] = [16, 64, 128];
/// Lengths are log-normal: e^(ln MEDIAN + SIGMA * normal).
const MEDIAN: f32 = 2048.0;
const SIGMA: f32 = 1.0;
const LONGEST: usize = 100 * MEDIAN as usize;
/// One sequence in so many has no tokens.
const EMPTY: usize = 16;
const SEED: u64 = 1;

#[derive(Serialize)]
pub struct Line {
    pub batch: usize,
    pub heads: usize,
    pub tokens: usize,
    pub longest: usize,
    pub uneven: Timing,
    /// As many tokens in sequences of one length.
    pub even: Timing,
    /// Uneven / even, of the medians.
    pub ratio: f64,
}

pub fn measure(
    engine: &Engine,
    pool: &Pool,
    method: &Method,
    heads: &[usize],
    batch_invariant: bool,
    bar: &ProgressBar,
) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for batch in BATCHES {
        let lengths = lengths(batch);
        let tokens = lengths.iter().sum();
        let even = even(batch, tokens);
        for &heads in heads {
            bar.set_message(format!("{batch} sequences, {heads} heads"));
            let time = |lengths| decode::time(engine, pool, method, lengths, (heads, 1), batch_invariant);
            let (uneven, even) = (time(&lengths)?, time(&even)?);
            let ratio = uneven.median / even.median;
            lines.push(Line { batch, heads, tokens, longest: LONGEST, uneven, even, ratio });
            bar.inc(1);
        }
    }
    Ok(lines)
}

/// Tokens of the pages that one call reads at most.
pub fn pool_tokens(page_size: usize) -> usize {
    let in_pages = |lengths: Vec<usize>| -> usize { lengths.iter().map(|n| n.div_ceil(page_size) * page_size).sum() };
    let both = |batch| {
        let uneven = lengths(batch);
        let tokens = uneven.iter().sum();
        in_pages(uneven).max(in_pages(even(batch, tokens)))
    };
    BATCHES.into_iter().map(both).max().unwrap_or(0)
}

fn lengths(batch: usize) -> Vec<usize> {
    let mut rng = Rng::new(SEED, 5, batch as u64);
    let mut lengths: Vec<usize> = (0..batch).map(|_| (MEDIAN * (SIGMA * rng.normal()).exp()) as usize).collect();
    lengths.iter_mut().skip(EMPTY / 2).step_by(EMPTY).for_each(|length| *length = 0);
    lengths[batch / 2] = LONGEST;
    lengths
}

fn even(batch: usize, tokens: usize) -> Vec<usize> {
    (0..batch).map(|b| (tokens + b) / batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_the_same_tokens_unevenly() {
        for batch in BATCHES {
            let uneven = lengths(batch);
            assert_eq!(uneven.iter().max(), Some(&LONGEST));
            assert_eq!(uneven.iter().filter(|&&n| n == 0).count(), batch / EMPTY);
            let tokens: usize = uneven.iter().sum();
            let even = even(batch, tokens);
            assert_eq!(even.iter().sum::<usize>(), tokens);
            assert!(even.iter().max().expect("some") - even.iter().min().expect("some") <= 1);
        }
    }
}
