//! Attention in f64, as plainly as it can be written: the yardstick of `run` and `check`.

use crate::layer::Rows;

pub struct Answer {
    pub out: Vec<f64>,
    pub lse: f64,
    /// Largest |logit|.
    pub peak: f64,
}

/// One query row over the first `count` of `tokens`.
pub fn attend(query: (&[f32], &[f32]), tokens: &Rows, count: usize, softmax_scale: f32) -> Answer {
    let logits: Vec<f64> = (0..count)
        .map(|t| {
            let (content, rope) = tokens.row(t);
            softmax_scale as f64 * (dot(query.0, content) + dot(query.1, rope))
        })
        .collect();
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut out = vec![0.0; query.0.len()];
    let mut sum = 0.0;
    for (t, logit) in logits.iter().enumerate() {
        let p = (logit - max).exp();
        sum += p;
        for (o, &v) in out.iter_mut().zip(tokens.row(t).0) {
            *o += p * v as f64;
        }
    }
    if count > 0 {
        out.iter_mut().for_each(|o| *o /= sum);
    }
    Answer { out, lse: max + sum.ln(), peak: logits.iter().fold(0.0, |m, x| x.abs().max(m)) }
}

/// Eight sums side by side, so that the compiler can use vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for i in 0..8 {
            sums[i] += a[i] as f64 * b[i] as f64;
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{CONTENT, ROPE};

    #[test]
    fn equal_logits_average_the_values() {
        let content: Vec<f32> = (0..3 * CONTENT).map(|i| (i / CONTENT) as f32).collect();
        let tokens = Rows { content, rope: vec![1.0; 3 * ROPE] };
        let answer = attend((&[0.0; CONTENT], &[0.5; ROPE]), &tokens, 3, 0.25);
        assert!(answer.out.iter().all(|o| (o - 1.0).abs() < 1e-12));
        assert!((answer.lse - (8.0 + 3f64.ln())).abs() < 1e-12);
        assert_eq!(answer.peak, 8.0);
    }

    #[test]
    fn nothing_to_attend_to() {
        let answer = attend((&[1.0; CONTENT], &[1.0; ROPE]), &Rows::default(), 0, 1.0);
        assert_eq!(answer.lse, f64::NEG_INFINITY);
        assert!(answer.out.iter().all(|&o| o == 0.0));
    }
}
