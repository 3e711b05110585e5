//! Launches records copy.

use super::args::{CacheArgs, RecordsCopyArgs};
use super::grid::run_rows;
use super::{Cuda, Stream};
use crate::error::Result;
use crate::request::RecordsCopyRequest;

/// Records a warp, as in `cuda/records_copy.cu`.
const WARP_RECORDS: i64 = 4;

impl Cuda {
    pub fn records_copy(&self, request: &RecordsCopyRequest, stream: Stream) -> Result<()> {
        let RecordsCopyRequest { cache, first_layer, num_layers, num_records, src_slots, dst_slots } = *request;
        if num_records == 0 {
            return Ok(());
        }
        self.check_pointers(&[("src_slots", src_slots.cast()), ("dst_slots", dst_slots.cast())])?;
        let args = RecordsCopyArgs {
            cache: CacheArgs::new(&cache, first_layer),
            layer_stride: cache.layer_stride,
            src_slots,
            dst_slots,
            num_records,
        };
        run_rows(&self.kernels.records_copy, num_records, WARP_RECORDS, num_layers, stream, &args)
    }
}
