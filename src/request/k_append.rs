//! K-append: new tokens, quantised into the cache.

use super::{CacheView, Dtype, Rows};

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
