//! Answers of a session against attention in f64, on sampled rows.

use rayon::prelude::*;
use serde::Serialize;

use crate::compare::{Comparison, Errors};
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::layer::{CONTENT, Rows};
use crate::queries::QuerySet;
use crate::reference::attend;
use crate::rng::Rng;
use crate::session::{Output, Session};

/// Sequences looked at in one verification, and rows of each.
const SEQUENCES: usize = 2;
const ROWS: usize = 8;

/// How far from f64 an answer may be.
pub struct Bounds {
    /// Of the decode, over what the cache holds.
    pub decode: f64,
    pub lse: f64,
    /// Of the whole, quantisation of queries and cache included.
    pub whole: f64,
    pub whole_lse: f64,
}

/// The CPU's sums are f32; the GPU's tensor cores add with fewer bits.
const CPU_BOUNDS: Bounds = Bounds { decode: 3e-2, lse: 1e-5, whole: 1e-1, whole_lse: 5e-2 };
const CUDA_BOUNDS: Bounds = Bounds { decode: 4e-2, lse: 6e-3, whole: 1e-1, whole_lse: 5e-2 };

impl Bounds {
    pub fn of(engine: &Engine) -> &'static Self {
        if engine.on_gpu() { &CUDA_BOUNDS } else { &CPU_BOUNDS }
    }

    /// The first bound that does not hold.
    pub fn broken(&self, decode: &Measured, whole: &Measured) -> Option<String> {
        let whole_bounds = [
            ("relative L2 against the original tokens", whole.out.relative_l2, self.whole),
            ("log-sum-exp error against the original tokens", whole.lse, self.whole_lse),
        ];
        self.decode_broken(decode).or_else(|| first_broken(&whole_bounds))
    }

    pub fn decode_broken(&self, decode: &Measured) -> Option<String> {
        first_broken(&[
            ("relative L2 of the decode", decode.out.relative_l2, self.decode),
            ("log-sum-exp error of the decode", decode.lse, self.lse),
        ])
    }
}

/// Of (name, value, bound).
fn first_broken(bounds: &[(&str, f64, f64)]) -> Option<String> {
    let (name, is, bound) = bounds.iter().find(|(_, is, bound)| is.is_nan() || is > bound)?;
    Some(format!("{name} is {is:.2e}, above its bound of {bound:.0e}"))
}

/// How far one kind of answer is from the reference.
#[derive(Default, Clone, Copy)]
pub struct Distance {
    sums: Comparison,
    lse: f64,
}

#[derive(Serialize, Clone, Copy)]
pub struct Measured {
    #[serde(flatten)]
    pub out: Errors,
    /// Largest |lse - reference|, relative to the row's largest |logit| where that is above 1.
    pub lse: f64,
}

impl Distance {
    /// Of one row's answer from attention over the first `count` of `tokens`.
    pub fn of_row(
        query: (&[f32], &[f32]),
        tokens: &Rows,
        count: usize,
        scale: f32,
        (out, lse): (&[f64], f64),
    ) -> Self {
        let answer = attend(query, tokens, count, scale);
        let lse = (lse - answer.lse).abs() / answer.peak.max(1.0);
        Self { sums: Comparison::of(out.iter().copied(), &answer.out), lse }
    }

    pub fn add(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        // Not f64::max, which would drop a NaN.
        if other.lse.is_nan() || other.lse > self.lse {
            self.lse = other.lse;
        }
    }

    pub fn measured(&self) -> Measured {
        Measured { out: self.sums.errors(), lse: self.lse }
    }
}

/// Distances from two references, over every row looked at so far.
#[derive(Default)]
pub struct Verification {
    pub rows: usize,
    /// From attention over what the cache holds: what the decode itself adds.
    pub decode: Distance,
    /// From attention over the original tokens and queries: quantisation included.
    pub whole: Distance,
}

impl Verification {
    /// Looks at some rows of a decode call's `output` for the last `q_len` tokens of the session's sequences.
    pub fn look(
        &mut self,
        session: &Session,
        queries: &QuerySet,
        (q_len, heads): (usize, usize),
        scale: f32,
        output: &Output,
        rng: &mut Rng,
    ) -> Result<()> {
        for _ in 0..SEQUENCES {
            let b = rng.below(session.sequences.len());
            let len = session.sequences[b].len;
            let (original, fetched) = (session.original(b), session.fetched(b, len)?);
            let mut picks = Vec::new();
            for _ in 0..ROWS {
                let (i, head) = (rng.below(q_len), rng.below(heads));
                let row = (b * q_len + i) * heads + head;
                let out = output.out.read(row * CONTENT..(row + 1) * CONTENT)?;
                let out: Vec<f64> = out.into_iter().map(f64::from).collect();
                picks.push((row, len - q_len + i + 1, out, output.lse.read(row..row + 1)?[0] as f64));
            }
            let (dequantised, raw) = (&queries.dequantised, &queries.original);
            let distances: Vec<(Distance, Distance)> = picks
                .par_iter()
                .map(|(row, count, out, lse)| {
                    let from = |queries: &Rows, tokens: &Rows| {
                        Distance::of_row(queries.row(*row), tokens, *count, scale, (out, *lse))
                    };
                    (from(dequantised, &fetched), from(raw, &original))
                })
                .collect();
            for (decode, whole) in &distances {
                self.decode.add(decode);
                self.whole.add(whole);
            }
            self.rows += distances.len();
        }
        Ok(())
    }
}

/// Holds every number of a fetched prefix against the original: it must be what E4M3 and BF16 can do.
pub fn check_prefix(fetched: &Rows, original: &Rows) -> Result<Comparison> {
    for t in 0..fetched.content.len() / CONTENT {
        let (content, rope) = fetched.row(t);
        let (wanted_content, wanted_rope) = original.row(t);
        let scale = wanted_content.iter().fold(0f32, |m, x| m.max(x.abs())) / 448.0;
        // Half a unit in the last place: 3 bits of mantissa, and the fixed step of the smallest numbers.
        near("content", t, content, wanted_content, |x| (x.abs() / 16.0).max(scale / 1024.0))?;
        near("rope", t, rope, wanted_rope, |x| x.abs() / 256.0)?;
    }
    let wanted: Vec<f64> = original.content[..fetched.content.len()].iter().map(|&x| x as f64).collect();
    Ok(Comparison::of(fetched.content.iter().map(|&x| x as f64), &wanted))
}

fn near(part: &str, token: usize, got: &[f32], wanted: &[f32], slack: impl Fn(f32) -> f32) -> Result<()> {
    for (i, (&got, &wanted)) in got.iter().zip(wanted).enumerate() {
        if got.is_nan() || (got - wanted).abs() > slack(wanted) * 1.0001 {
            let text = format!("fetched {part} of token {token}, number {i}, is {got}; {wanted} was appended");
            return Err(Failure::new(text));
        }
    }
    Ok(())
}
