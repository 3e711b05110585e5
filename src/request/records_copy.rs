//! Records copy: slot to slot inside one cache.

use super::CacheView;

#[derive(Debug, Clone, Copy)]
pub struct RecordsCopyRequest {
    pub cache: CacheView,
    /// First layer and how many.
    pub first_layer: usize,
    pub num_layers: usize,
    pub num_records: i64,
    pub src_slots: *const i64,
    pub dst_slots: *const i64,
}
