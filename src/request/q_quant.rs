//! Q-quant: absorbed queries to E4M3 content, scaled BF16 rope and a scale per (token, head).

use super::{Dtype, HeadRows};

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
