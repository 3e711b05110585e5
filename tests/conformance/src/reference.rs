//! Attention as the contract's section 4 defines it, in f64: each token looked up in the block table by itself.

use crate::case::Image;
use crate::record::{CONTENT, ROPE, Record};

#[derive(Clone)]
pub struct Attended {
    pub out: Vec<f64>,
    pub lse: f64,
    /// Largest |logit|.
    pub largest_logit: f64,
}

/// A query and how many of its sequence's first tokens it attends.
pub struct Query {
    pub record: Record,
    pub keys: usize,
}

/// A token or a query as numbers, before its scale.
struct Unpacked {
    content: [f64; CONTENT],
    rope: [f64; ROPE],
    scale: f64,
}

impl Unpacked {
    fn new(record: &Record) -> Self {
        let (mut content, mut rope) = ([0.0; CONTENT], [0.0; ROPE]);
        record.unpack(&mut content, &mut rope);
        Unpacked { content: content.map(f64::from), rope: rope.map(f64::from), scale: f64::from(record.scale) }
    }
}

/// The sum of products. Eight sums side by side, so that the compiler can use vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum()
}

/// Queries over one sequence, side by side.
pub fn attend(image: &Image, sequence: usize, queries: &[Query], softmax_scale: f32) -> Vec<Attended> {
    let longest = queries.iter().map(|query| query.keys).max().unwrap_or(0);
    let unpacked: Vec<Unpacked> = queries.iter().map(|query| Unpacked::new(&query.record)).collect();
    let mut logits: Vec<Vec<f64>> = queries.iter().map(|query| Vec::with_capacity(query.keys)).collect();
    for t in 0..longest {
        let key = Unpacked::new(&image.record(sequence, t));
        for (i, query) in unpacked.iter().enumerate().filter(|(i, _)| t < queries[*i].keys) {
            let sum = dot(&query.content, &key.content) + dot(&query.rope, &key.rope);
            logits[i].push(f64::from(softmax_scale) * query.scale * key.scale * sum);
        }
    }
    let mut softmaxes: Vec<Softmax> = logits.into_iter().map(Softmax::new).collect();
    for t in 0..longest {
        let value = Unpacked::new(&image.record(sequence, t));
        for (softmax, _) in softmaxes.iter_mut().zip(queries).filter(|(_, query)| t < query.keys) {
            softmax.add(t, &value.content, value.scale);
        }
    }
    softmaxes.into_iter().map(Softmax::end).collect()
}

/// A weighted sum of values by the softmax of their logits.
pub struct Softmax {
    logits: Vec<f64>,
    largest: f64,
    total: f64,
    out: Vec<f64>,
}

impl Softmax {
    pub fn new(logits: Vec<f64>) -> Self {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total = logits.iter().map(|logit| (logit - largest).exp()).sum();
        Self { logits, largest, total, out: vec![0.0; CONTENT] }
    }

    /// Adds the value of token `t`: `numbers` times `scale`.
    pub fn add(&mut self, t: usize, numbers: &[f64; CONTENT], scale: f64) {
        let weight = (self.logits[t] - self.largest).exp() * scale;
        for (sum, x) in self.out.iter_mut().zip(numbers) {
            *sum += weight * x;
        }
    }

    pub fn end(mut self) -> Attended {
        if self.logits.is_empty() {
            return Attended { out: self.out, lse: f64::NEG_INFINITY, largest_logit: 0.0 };
        }
        self.out.iter_mut().for_each(|sum| *sum /= self.total);
        let largest_logit = self.logits.iter().fold(0.0, |most, logit| logit.abs().max(most));
        Attended { out: self.out, lse: self.largest + self.total.ln(), largest_logit }
    }
}
