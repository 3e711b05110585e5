use std::ffi::c_void;

use snapmla::abi::types::snapmla_merge_params;

use super::Suite;
use crate::backend::{Backend, init};
use crate::bits::Float;
use crate::check::untouched;
use crate::memory::{Buffer, Result};
use crate::prng::Rng;
use crate::record::CONTENT;
use crate::report::Metrics;
use crate::strides::{Dims, Row, Strides, Style};
use crate::tolerance;

#[derive(Clone, Copy)]
struct Merge {
    parts: usize,
    tokens: usize,
    heads: usize,
    parts_type: Float,
    out_type: Float,
    style: Style,
    want_lse: bool,
}

pub fn run(suite: &mut Suite) {
    let base = Merge {
        parts: 3,
        tokens: 5,
        heads: 16,
        parts_type: Float::F32,
        out_type: Float::F32,
        style: Style::Packed,
        want_lse: true,
    };
    for parts_type in Float::ALL {
        for out_type in Float::ALL {
            let merge = Merge { parts_type, out_type, ..base };
            suite.case(format!("{}-to-{}", parts_type.name(), out_type.name()), |backend| check(backend, merge));
        }
    }
    for style in Style::ALL {
        for (parts, tokens, heads) in [(1, 1, 1), (2, 3, 20), (8, 2, 128), (70, 1, 7), (4, 33, 300)] {
            let merge = Merge { parts, tokens, heads, style, ..base };
            suite.case(format!("{parts}x{tokens}x{heads}-{style:?}"), |backend| check(backend, merge));
        }
    }
    suite.case("no-lse", |backend| check(backend, Merge { want_lse: false, ..base }));
    suite.case("nothing", |backend| {
        let mut p = init!(snapmla_merge_params);
        (p.num_parts, p.num_heads) = (2, 4);
        (p.parts_dtype, p.out_dtype) = (Float::F32.code(), Float::F32.code());
        // SAFETY: no tokens: no pointer is followed.
        unsafe { backend.merge(&p, &backend.stream)? };
        backend.stream.wait()?;
        Ok(Metrics::none())
    });
}

fn check(backend: &Backend, merge: Merge) -> Result<Metrics> {
    let Merge { parts, tokens, heads, style, .. } = merge;
    let all = Dims { batch: parts, q_len: Some(tokens), tokens: parts * tokens, heads };
    let one = Dims { batch: 1, q_len: Some(tokens), tokens, heads };
    let (pe, oe) = (merge.parts_type.bytes(), merge.out_type.bytes());
    let parts_at = Strides::new(style, &all, CONTENT * pe, pe);
    let parts_lse_at = Strides::new(style, &all, 4, 4);
    let out_at = Strides::new(style, &one, CONTENT * oe, oe);
    let lse_at = Strides::new(style, &one, 4, 4);
    let row = |part: usize, token: usize, head: usize| Row {
        sequence: part,
        query: token,
        token: part * tokens + token,
        head,
    };
    let mut rng = Rng::new(parts as u64);
    let (mut values, mut lses) = (vec![0xFF; parts_at.extent(&all)], vec![0xFF; parts_lse_at.extent(&all)]);
    for token in 0..tokens {
        for head in 0..heads {
            for part in 0..parts {
                let row = row(part, token, head);
                let lse = part_lse(&mut rng, token * heads + head, part);
                lses[parts_lse_at.range(row)].copy_from_slice(&lse.to_le_bytes());
                // The output of a part that attended to nothing stays NaN.
                if lse.is_finite() {
                    for to in values[parts_at.range(row)].chunks_mut(pe) {
                        merge.parts_type.put(rng.bell(), to);
                    }
                }
            }
        }
    }
    let (values_in, lses_in) = (backend.buffer(&values)?, backend.buffer(&lses)?);
    let out = Buffer::filled(&backend.memory, out_at.extent(&one), 0xFF)?;
    let lse = Buffer::filled(&backend.memory, lse_at.extent(&one), 0xFF)?;
    let mut p = init!(snapmla_merge_params);
    (p.num_parts, p.num_heads, p.num_tokens) = (parts as u32, heads as u32, tokens as i64);
    (p.parts_dtype, p.out_dtype) = (merge.parts_type.code(), merge.out_type.code());
    p.parts = values_in.at::<c_void>(parts_at.base);
    (p.parts_part_stride, p.parts_token_stride, p.parts_head_stride) = parts_at.passed();
    p.parts_lse = lses_in.at(parts_lse_at.base);
    (p.parts_lse_part_stride, p.parts_lse_token_stride, p.parts_lse_head_stride) = parts_lse_at.passed();
    p.out = out.at::<c_void>(out_at.base);
    (_, p.out_token_stride, p.out_head_stride) = out_at.passed();
    if merge.want_lse {
        p.lse = lse.at(lse_at.base);
        (_, p.lse_token_stride, p.lse_head_stride) = lse_at.passed();
    }
    // SAFETY: the buffers are as large as the strides say.
    unsafe { backend.merge(&p, &backend.stream)? };
    backend.stream.wait()?;
    let (out, lse) = (out.download()?, lse.download()?);
    let rows: Vec<Row> = (0..tokens * heads).map(|i| row(0, i / heads, i % heads)).collect();
    untouched("out", &out, 0xFF, rows.iter().map(|&row| out_at.range(row)))?;
    let written = if merge.want_lse { &rows[..] } else { &[] };
    untouched("lse", &lse, 0xFF, written.iter().map(|&row| lse_at.range(row)))?;
    let mut worst = 0f64;
    for &at in &rows {
        let parts: Vec<(f64, Vec<f64>)> = (0..parts)
            .map(|part| {
                let row = row(part, at.query, at.head);
                let numbers = values[parts_at.range(row)].chunks(pe).map(|x| merge.parts_type.get(x).into());
                (Float::F32.get(&lses[parts_lse_at.range(row)]).into(), numbers.collect())
            })
            .collect();
        let got: Vec<f64> = out[out_at.range(at)].chunks(oe).map(|x| merge.out_type.get(x).into()).collect();
        let got_lse = merge.want_lse.then(|| Float::F32.get(&lse[lse_at.range(at)]).into());
        worst = worst.max(one_row(merge.out_type, at, &parts, &got, got_lse)?);
    }
    Ok(Metrics::one("merge", worst))
}

/// Parts near each other, far apart, empty in both ways, and rows all of whose parts are empty.
fn part_lse(rng: &mut Rng, row: usize, part: usize) -> f32 {
    let lse = match row % 4 {
        0 => rng.bell(),
        1 => 300.0 * rng.bell(),
        2 => -5000.0 + rng.bell(),
        _ => 80.0 + 8.0 * rng.bell(),
    };
    match (row % 7, part % 3) {
        (5, _) => f32::NEG_INFINITY,
        (3, 0) => f32::NEG_INFINITY,
        (4, 1) => f32::INFINITY,
        _ => lse,
    }
}

/// The worst error of a row beside what is allowed for f32 arithmetic.
fn one_row(out_type: Float, row: Row, parts: &[(f64, Vec<f64>)], got: &[f64], got_lse: Option<f64>) -> Result<f64> {
    let largest = parts.iter().map(|part| part.0).filter(|lse| lse.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let full: Vec<_> = parts.iter().filter(|(lse, _)| lse.is_finite()).collect();
    let total: f64 = full.iter().map(|(lse, _)| (lse - largest).exp()).sum();
    let lse = if full.is_empty() { f64::NEG_INFINITY } else { largest + total.ln() };
    if let Some(got) = got_lse {
        let right = got == lse || (got - lse).abs() <= tolerance::MERGE * lse.abs().max(1.0);
        if !right {
            return Err(format!("token {}, head {}: lse {got}, not {lse}", row.query, row.head));
        }
    }
    let weights: Vec<f64> = full.iter().map(|(lse, _)| (lse - largest).exp() / total).collect();
    let sum = |dim: usize, part: fn(f64) -> f64| -> f64 {
        full.iter().zip(&weights).map(|((_, numbers), weight)| weight * part(numbers[dim])).sum()
    };
    let size = (0..CONTENT).map(|dim| sum(dim, f64::abs)).fold(0.0, f64::max);
    let rounding = match out_type {
        Float::Bf16 => tolerance::BF16_ROUNDING,
        Float::F16 => tolerance::F16_ROUNDING,
        Float::F32 => 0.0,
    };
    let mut worst = 0f64;
    for (dim, got) in got.iter().enumerate() {
        let want = sum(dim, |x| x);
        let error = (got - want).abs() - rounding * size;
        if error.is_nan() || error > tolerance::MERGE * size {
            return Err(format!("token {}, head {}: out[{dim}] is {got:e}, not {want:e}", row.query, row.head));
        }
        worst = worst.max(if size > 0.0 { error / size } else { 0.0 });
    }
    Ok(worst)
}
