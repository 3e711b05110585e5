//! Fetch-dequant: cached tokens read back at high precision.

use super::strides::{self, Dim, Row};
use super::{CacheView, Dtype, Rows, checks};
use crate::abi::types::snapmla_fetch_params;
use crate::error::{Error, Result};
use crate::layout::{CONTENT_DIM, ROPE_DIM};

#[derive(Debug, Clone, Copy)]
pub enum FetchSource {
    /// Output row i is the record at `slots[i]`.
    Slots(*const i64),
    /// Output rows `cu_tokens[b]..cu_tokens[b + 1]` are sequence b's tokens from `starts[b]` on.
    BlockTable {
        block_table: Rows<*const i32>,
        max_pages: u32,
        batch: u32,
        /// NULL means 0 for all.
        starts: *const i32,
        cu_tokens: *const i32,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct FetchRequest {
    pub cache: CacheView,
    pub layer: usize,
    pub dtype: Dtype,
    pub num_tokens: i64,
    pub source: FetchSource,
    /// `ptr` may be NULL: that part is skipped.
    pub content: Rows<*mut u8>,
    /// `ptr` may be NULL: that part is skipped.
    pub rope: Rows<*mut u8>,
}

impl FetchRequest {
    pub fn from_params(params: &snapmla_fetch_params, cache: CacheView) -> Result<Self> {
        checks::flags("flags", params.flags, 0)?;
        let layer = checks::layer(params.layer, cache.num_layers)?;
        let dtype = checks::dtype("dtype", params.dtype)?;
        let tokens = checks::count("num_tokens", params.num_tokens)?;
        let source = source(params)?;
        checks::optional("content", params.content, dtype.bytes() as i64)?;
        checks::optional("rope", params.rope, dtype.bytes() as i64)?;
        if tokens > 0 && params.content.is_null() && params.rope.is_null() {
            return Err(Error::invalid(format!("content and rope are both NULL, but num_tokens is {tokens}")));
        }
        let content = Dim::new("content_stride", params.content_stride, tokens);
        let rope = Dim::new("rope_stride", params.rope_stride, tokens);
        let [content_stride] = strides::resolve(Row::of(CONTENT_DIM, dtype), [content])?;
        let [rope_stride] = strides::resolve(Row::of(ROPE_DIM, dtype), [rope])?;
        Ok(Self {
            cache,
            layer,
            dtype,
            num_tokens: tokens,
            source,
            content: Rows { ptr: params.content.cast(), stride: content_stride },
            rope: Rows { ptr: params.rope.cast(), stride: rope_stride },
        })
    }

    /// Output rows that can be written: none when no sequence gives any.
    pub fn most_rows(&self) -> i64 {
        match self.source {
            FetchSource::BlockTable { batch: 0, .. } => 0,
            _ => self.num_tokens,
        }
    }
}

fn source(params: &snapmla_fetch_params) -> Result<FetchSource> {
    if !params.slots.is_null() && !params.block_table.is_null() {
        return Err(Error::invalid(format!(
            "slots {:p} and block_table {:p} are both given, tokens are named by one of them",
            params.slots, params.block_table
        )));
    }
    if params.block_table.is_null() {
        if params.slots.is_null() && params.num_tokens > 0 {
            return Err(Error::invalid(format!(
                "slots and block_table are both NULL, but num_tokens is {}",
                params.num_tokens
            )));
        }
        checks::optional("slots", params.slots, 8)?;
        return Ok(FetchSource::Slots(params.slots));
    }
    let batch = i64::from(params.batch);
    checks::array("cu_tokens", params.cu_tokens, 4, ("batch", batch))?;
    checks::optional("starts", params.starts, 4)?;
    Ok(FetchSource::BlockTable {
        block_table: super::block_table(params.block_table, params.block_table_stride, batch, params.max_pages)?,
        max_pages: params.max_pages,
        batch: params.batch,
        starts: params.starts,
        cu_tokens: params.cu_tokens,
    })
}
