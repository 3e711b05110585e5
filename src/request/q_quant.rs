//! Q-quant: absorbed queries to E4M3 content, scaled BF16 rope and a scale per (token, head).

use super::strides::{self, Dim, Row};
use super::{Dtype, HeadRows, checks};
use crate::abi::types::snapmla_q_quant_params;
use crate::error::Result;
use crate::layout::{CONTENT_DIM, ROPE_DIM};

#[derive(Debug, Clone, Copy)]
pub struct QQuantRequest {
    pub dtype: Dtype,
    pub num_tokens: i64,
    pub num_heads: usize,
    pub content: HeadRows<*const u8>,
    pub rope: HeadRows<*const u8>,
    /// Packed [num_tokens][num_heads][512] E4M3.
    pub q_content: *mut u8,
    /// Packed [num_tokens][num_heads][64] BF16.
    pub q_rope: *mut u8,
    /// Packed [num_tokens][num_heads].
    pub q_scale: *mut f32,
}

impl QQuantRequest {
    pub fn from_params(params: &snapmla_q_quant_params) -> Result<Self> {
        checks::flags("flags", params.flags, 0)?;
        let dtype = checks::dtype("dtype", params.dtype)?;
        let heads = checks::heads("num_heads", params.num_heads)?;
        let tokens = checks::count("num_tokens", params.num_tokens)?;
        let counter = ("num_tokens", tokens);
        checks::array("content", params.content, dtype.bytes() as i64, counter)?;
        checks::array("rope", params.rope, dtype.bytes() as i64, counter)?;
        checks::array("q_content", params.q_content, checks::CHUNK, counter)?;
        checks::array("q_rope", params.q_rope, checks::CHUNK, counter)?;
        checks::array("q_scale", params.q_scale, 4, counter)?;
        let content = [
            Dim::new("content_head_stride", params.content_head_stride, heads.into()),
            Dim::new("content_token_stride", params.content_token_stride, tokens),
        ];
        let rope = [
            Dim::new("rope_head_stride", params.rope_head_stride, heads.into()),
            Dim::new("rope_token_stride", params.rope_token_stride, tokens),
        ];
        let [content_head, content_token] = strides::resolve(Row::of(CONTENT_DIM, dtype), content)?;
        let [rope_head, rope_token] = strides::resolve(Row::of(ROPE_DIM, dtype), rope)?;
        Ok(Self {
            dtype,
            num_tokens: tokens,
            num_heads: heads as usize,
            content: HeadRows { ptr: params.content.cast(), token_stride: content_token, head_stride: content_head },
            rope: HeadRows { ptr: params.rope.cast(), token_stride: rope_token, head_stride: rope_head },
            q_content: params.q_content.cast(),
            q_rope: params.q_rope.cast(),
            q_scale: params.q_scale,
        })
    }
}
