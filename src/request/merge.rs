//! Merge: partial (output, log-sum-exp) pairs of the same rows into one.

use super::strides::{self, Dim, Row};
use super::{Dtype, HeadRows, checks};
use crate::abi::types::snapmla_merge_params;
use crate::error::Result;
use crate::layout::CONTENT_DIM;

#[derive(Debug, Clone, Copy)]
pub struct MergeRequest {
    pub num_parts: u32,
    pub num_heads: u32,
    pub num_tokens: i64,
    pub parts_dtype: Dtype,
    pub out_dtype: Dtype,
    pub parts: HeadRows<*const u8>,
    pub parts_part_stride: i64,
    pub parts_lse: HeadRows<*const f32>,
    pub parts_lse_part_stride: i64,
    pub out: HeadRows<*mut u8>,
    /// `ptr` may be NULL.
    pub lse: HeadRows<*mut f32>,
}

impl MergeRequest {
    pub fn from_params(params: &snapmla_merge_params) -> Result<Self> {
        checks::flags("flags", params.flags, 0)?;
        let num_parts = checks::at_least_one("num_parts", params.num_parts)?;
        let num_heads = checks::at_least_one("num_heads", params.num_heads)?;
        let num_tokens = checks::count("num_tokens", params.num_tokens)?;
        let parts_dtype = checks::dtype("parts_dtype", params.parts_dtype)?;
        let out_dtype = checks::dtype("out_dtype", params.out_dtype)?;
        let counter = ("num_tokens", num_tokens);
        checks::array("parts", params.parts, parts_dtype.bytes() as i64, counter)?;
        checks::array("parts_lse", params.parts_lse, 4, counter)?;
        checks::array("out", params.out, out_dtype.bytes() as i64, counter)?;
        checks::optional("lse", params.lse, 4)?;
        let rows = |row, head, token| strides::resolve(row, rows_of(params, head, token));
        let parts = |row, head, token, part: (&'static str, i64)| {
            let [head, token] = rows_of(params, head, token);
            strides::resolve(row, [head, token, Dim::new(part.0, part.1, num_parts.into())])
        };
        let [parts_head, parts_token, parts_part_stride] = parts(
            Row::of(CONTENT_DIM, parts_dtype),
            ("parts_head_stride", params.parts_head_stride),
            ("parts_token_stride", params.parts_token_stride),
            ("parts_part_stride", params.parts_part_stride),
        )?;
        let [parts_lse_head, parts_lse_token, parts_lse_part_stride] = parts(
            Row::F32,
            ("parts_lse_head_stride", params.parts_lse_head_stride),
            ("parts_lse_token_stride", params.parts_lse_token_stride),
            ("parts_lse_part_stride", params.parts_lse_part_stride),
        )?;
        let [out_head, out_token] = rows(
            Row::of(CONTENT_DIM, out_dtype),
            ("out_head_stride", params.out_head_stride),
            ("out_token_stride", params.out_token_stride),
        )?;
        let [lse_head, lse_token] = rows(
            Row::F32,
            ("lse_head_stride", params.lse_head_stride),
            ("lse_token_stride", params.lse_token_stride),
        )?;
        Ok(Self {
            num_parts,
            num_heads,
            num_tokens,
            parts_dtype,
            out_dtype,
            parts: HeadRows { ptr: params.parts.cast(), token_stride: parts_token, head_stride: parts_head },
            parts_part_stride,
            parts_lse: HeadRows { ptr: params.parts_lse, token_stride: parts_lse_token, head_stride: parts_lse_head },
            parts_lse_part_stride,
            out: HeadRows { ptr: params.out.cast(), token_stride: out_token, head_stride: out_head },
            lse: HeadRows { ptr: params.lse, token_stride: lse_token, head_stride: lse_head },
        })
    }
}

fn rows_of(params: &snapmla_merge_params, head: (&'static str, i64), token: (&'static str, i64)) -> [Dim; 2] {
    [Dim::new(head.0, head.1, params.num_heads.into()), Dim::new(token.0, token.1, params.num_tokens)]
}
