//! Fetch-dequant: cached tokens read back at high precision.

use super::{CacheView, Dtype, Rows};

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
