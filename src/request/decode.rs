//! Decode: FP8 attention over the cache.

use super::{BatchRows, CacheView, Dtype, Rows};

/// How the queries come.
#[derive(Debug, Clone, Copy)]
pub enum Queries {
    /// Raw, quantised by the decode itself.
    Raw(Dtype),
    /// As `q_quant` wrote them, with their scales.
    Quantised(BatchRows<*const f32>),
}

#[derive(Debug, Clone, Copy)]
pub struct DecodeRequest {
    pub cache: CacheView,
    pub layer: usize,
    pub causal: bool,
    pub batch: u32,
    /// Query tokens of a sequence; with `cu_q_lens`, the most that one has.
    pub q_len: u32,
    pub num_heads: u32,
    pub softmax_scale: f32,
    pub queries: Queries,
    pub q_content: BatchRows<*const u8>,
    pub q_rope: BatchRows<*const u8>,
    /// NULL for a uniform batch.
    pub cu_q_lens: *const i32,
    pub seq_lens: *const i32,
    pub block_table: Rows<*const i32>,
    pub max_pages: u32,
    /// Sequences are cut here: `min(max_seq_len, max_pages * page_size)`, never 0 in the first operand.
    pub max_seq_len: u32,
    pub out_dtype: Dtype,
    pub out: BatchRows<*mut u8>,
    /// `ptr` may be NULL.
    pub lse: BatchRows<*mut f32>,
    pub workspace: *mut u8,
    pub workspace_size: u64,
}
