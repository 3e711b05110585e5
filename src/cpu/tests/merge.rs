//! Merge of partial results.

use super::fixture::*;
use crate::cpu::isa::Isa;
use crate::layout::CONTENT_DIM;
use crate::request::*;

struct Merged {
    out: Vec<f32>,
    lse: Vec<f32>,
}

/// Merges packed parts, `[parts][tokens][heads]`.
fn merged(isa: Isa, dtypes: (Dtype, Dtype), shape: [usize; 3], parts: &[f32], parts_lse: &[f32]) -> Merged {
    let [num_parts, tokens, heads] = shape;
    let parts = to_bytes(dtypes.0, parts);
    let row = |dtype: Dtype| (CONTENT_DIM * dtype.bytes()) as i64;
    let mut out = vec![0xFFu8; tokens * heads * CONTENT_DIM * dtypes.1.bytes()];
    let mut lse = vec![f32::NAN; tokens * heads];
    let by_head = |row: i64| (row * heads as i64, row);
    let ((in_token, in_head), (out_token, out_head)) = (by_head(row(dtypes.0)), by_head(row(dtypes.1)));
    let (lse_token, lse_head) = by_head(4);
    let request = MergeRequest {
        num_parts: num_parts as u32,
        num_heads: heads as u32,
        num_tokens: tokens as i64,
        parts_dtype: dtypes.0,
        out_dtype: dtypes.1,
        parts: HeadRows { ptr: parts.as_ptr(), token_stride: in_token, head_stride: in_head },
        parts_part_stride: in_token * tokens as i64,
        parts_lse: HeadRows { ptr: parts_lse.as_ptr(), token_stride: lse_token, head_stride: lse_head },
        parts_lse_part_stride: lse_token * tokens as i64,
        out: HeadRows { ptr: out.as_mut_ptr(), token_stride: out_token, head_stride: out_head },
        lse: HeadRows { ptr: lse.as_mut_ptr(), token_stride: lse_token, head_stride: lse_head },
    };
    cpu(2, isa).merge(&request).unwrap();
    Merged { out: from_bytes(dtypes.1, &out), lse }
}

#[test]
fn parts_weigh_by_their_log_sum_exps() {
    let (parts, tokens, heads) = (4, 3, 7);
    let mut random = Random(3);
    let rows = tokens * heads;
    let values = from_bytes(Dtype::F16, &to_bytes(Dtype::F16, &random.normals(parts * rows * CONTENT_DIM)));
    let lse: Vec<f32> = (0..parts * rows).map(|_| random.normal() * 3.0 + 100.0).collect();
    for isa in Isa::all() {
        let merged = merged(isa, (Dtype::F16, Dtype::F32), [parts, tokens, heads], &values, &lse);
        for row in 0..rows {
            let weights: Vec<f64> = (0..parts).map(|p| f64::from(lse[p * rows + row]).exp()).collect();
            let total: f64 = weights.iter().sum();
            assert!((f64::from(merged.lse[row]) - total.ln()).abs() < 1e-5);
            for dim in 0..CONTENT_DIM {
                let value = |p: usize| f64::from(values[(p * rows + row) * CONTENT_DIM + dim]);
                let wanted: f64 = (0..parts).map(|p| weights[p] / total * value(p)).sum();
                assert!((f64::from(merged.out[row * CONTENT_DIM + dim]) - wanted).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn empty_parts_are_not_looked_at() {
    let none = f32::NEG_INFINITY;
    let lse = [none, 2.0, none, f32::INFINITY, 1e30, none];
    let mut values = vec![f32::NAN; 6 * CONTENT_DIM];
    values[CONTENT_DIM..2 * CONTENT_DIM].fill(5.0);
    values[4 * CONTENT_DIM..5 * CONTENT_DIM].fill(-3.0);
    for isa in Isa::all() {
        // Two parts of three rows: part 1 has only row 1, part 0 likewise.
        let merged = merged(isa, (Dtype::F32, Dtype::Bf16), [2, 1, 3], &values, &lse);
        assert_eq!(merged.lse, [none, 1e30, none]);
        assert!(merged.out[..CONTENT_DIM].iter().all(|&v| v == 0.0));
        assert!(merged.out[CONTENT_DIM..2 * CONTENT_DIM].iter().all(|&v| v == -3.0));
        assert!(merged.out[2 * CONTENT_DIM..].iter().all(|&v| v == 0.0));
    }
}

#[test]
fn one_part_comes_back_as_it_was() {
    let mut random = Random(5);
    let values = random.normals(2 * CONTENT_DIM);
    for isa in Isa::all() {
        let merged = merged(isa, (Dtype::F32, Dtype::F32), [1, 2, 1], &values, &[-7.25, 1e4]);
        assert_eq!(merged.out, values);
        assert_eq!(merged.lse, [-7.25, 1e4]);
    }
}

#[test]
fn a_nan_spoils_its_own_row_only() {
    let mut values = vec![1.0; 4 * CONTENT_DIM];
    values[2 * CONTENT_DIM] = f32::NAN;
    for isa in Isa::all() {
        let merged = merged(isa, (Dtype::F32, Dtype::F32), [2, 1, 2], &values, &[0.0, 0.0, 0.0, f32::NAN]);
        assert!(merged.out[0].is_nan() && merged.out[1] == 1.0);
        assert!(merged.out[CONTENT_DIM..].iter().all(|v| v.is_nan()));
        assert!(merged.lse[0] == 2f32.ln() && merged.lse[1].is_nan());
    }
}
