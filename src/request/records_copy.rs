//! Records copy: slot to slot inside one cache.

use super::{CacheView, checks};
use crate::abi::types::{SNAPMLA_ALL_LAYERS, snapmla_records_copy_params};
use crate::error::Result;

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

impl RecordsCopyRequest {
    pub fn from_params(params: &snapmla_records_copy_params, cache: CacheView) -> Result<Self> {
        checks::flags("flags", params.flags, 0)?;
        checks::reserved("reserved", params.reserved)?;
        let (first_layer, num_layers) = match params.layer {
            SNAPMLA_ALL_LAYERS => (0, cache.num_layers),
            layer => (checks::layer(layer, cache.num_layers)?, 1),
        };
        let counter = ("num_records", checks::count("num_records", params.num_records)?);
        checks::array("src_slots", params.src_slots, 8, counter)?;
        checks::array("dst_slots", params.dst_slots, 8, counter)?;
        Ok(Self {
            cache,
            first_layer,
            num_layers,
            num_records: params.num_records,
            src_slots: params.src_slots,
            dst_slots: params.dst_slots,
        })
    }
}
