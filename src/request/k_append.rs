//! K-append: new tokens, quantised into the cache.

use super::strides::{self, Dim, Row};
use super::{CacheView, Dtype, Rows, checks};
use crate::abi::types::snapmla_k_append_params;
use crate::error::Result;
use crate::layout::{CONTENT_DIM, ROPE_DIM};

#[derive(Debug, Clone, Copy)]
pub struct KAppendRequest {
    pub cache: CacheView,
    pub layer: usize,
    pub dtype: Dtype,
    pub num_tokens: i64,
    pub content: Rows<*const u8>,
    pub rope: Rows<*const u8>,
    pub slots: *const i64,
}

impl KAppendRequest {
    pub fn from_params(params: &snapmla_k_append_params, cache: CacheView) -> Result<Self> {
        checks::flags("flags", params.flags, 0)?;
        let layer = checks::layer(params.layer, cache.num_layers)?;
        let dtype = checks::dtype("dtype", params.dtype)?;
        let tokens = checks::count("num_tokens", params.num_tokens)?;
        let counter = ("num_tokens", tokens);
        checks::array("content", params.content, dtype.bytes() as i64, counter)?;
        checks::array("rope", params.rope, dtype.bytes() as i64, counter)?;
        checks::array("slots", params.slots, 8, counter)?;
        let content = Dim::new("content_stride", params.content_stride, tokens);
        let rope = Dim::new("rope_stride", params.rope_stride, tokens);
        let [content_stride] = strides::resolve(Row::of(CONTENT_DIM, dtype), [content])?;
        let [rope_stride] = strides::resolve(Row::of(ROPE_DIM, dtype), [rope])?;
        Ok(Self {
            cache,
            layer,
            dtype,
            num_tokens: tokens,
            content: Rows { ptr: params.content.cast(), stride: content_stride },
            rope: Rows { ptr: params.rope.cast(), stride: rope_stride },
            slots: params.slots,
        })
    }
}
