use rayon::prelude::*;

use super::Suite;
use crate::backend::Backend;
use crate::bits::Float;
use crate::case::{self, Case, Image, Loaded, Questions};
use crate::data;
use crate::memory::Result;
use crate::record::{CONTENT, Numbers};
use crate::reference::{Attended, Softmax};
use crate::report::Metrics;
use crate::strides::Row;

/// How far FP8 as a whole is from attention that quantises nothing. Nothing is gated here but NaN.
pub fn run(suite: &mut Suite) {
    for length in suite.pick(vec![2_048], vec![1_024, 8_192, 32_768]) {
        for (name, tokens, queries) in [
            ("paper", data::paper(), data::paper_queries()),
            ("normal", data::mixed(), data::queries()),
            ("mean", data::with_mean(), data::flat_queries()),
        ] {
            let case = Case { heads: 16, out: Float::F32, tokens, queries, ..Case::new(&[length]) };
            suite.case(format!("{name}-{length}"), |backend| tell(backend, &case));
        }
    }
}

fn tell(backend: &Backend, case: &Case) -> Result<Metrics> {
    let (image, questions) = (Image::build(case)?, Questions::build(case));
    let loaded = Loaded::new(backend, case, &image, &questions)?;
    let answers = loaded.run(backend)?;
    let tokens: Vec<_> = (0..case.tokens_of(0)).into_par_iter().map(|t| case::numbers_of_token(case, 0, t)).collect();
    let rows = case.rows();
    let exact: Vec<(Row, Attended)> = rows.par_iter().map(|&row| (row, attend(case, row, &tokens))).collect();
    let (mut error, mut got_size, mut size, mut product) = (0.0, 0.0, 0.0, 0.0);
    for (row, want) in &exact {
        let bytes = &answers.out[answers.out_strides.range(*row)];
        for (got, want) in bytes.chunks_exact(4).map(|x| f64::from(Float::F32.get(x))).zip(&want.out) {
            error += (got - want).powi(2);
            got_size += got * got;
            size += want * want;
            product += got * want;
        }
    }
    if !error.is_finite() {
        return Err("NaN or infinity in the output".into());
    }
    let count = (rows.len() * CONTENT) as f64;
    let cosine = product / (got_size.sqrt() * size.sqrt());
    Ok(Metrics::one("RMSE", (error / count).sqrt())
        .with("1-cosine", 1.0 - cosine)
        .with("L2 exact", (error / size).sqrt()))
}

/// Attention over the tokens as they were, in f64.
fn attend(case: &Case, row: Row, tokens: &[Numbers]) -> Attended {
    let (content, rope) = case::numbers_of_query(case, row);
    let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    let scale = f64::from(case.softmax_scale);
    let logits = tokens.iter().map(|(c, r)| scale * (dot(&content, c) + dot(&rope, r))).collect();
    let mut softmax = Softmax::new(logits);
    tokens.iter().enumerate().for_each(|(t, (c, _))| softmax.add(t, &c.map(f64::from), 1.0));
    softmax.end()
}
