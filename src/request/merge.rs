//! Merge: partial (output, log-sum-exp) pairs of the same rows into one.

use super::{Dtype, HeadRows};

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
