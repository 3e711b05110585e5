//! Records copy: slot to slot, in one layer or many.

use super::page::Pages;
use super::row::QuantisedRow;
use super::slots::Slots;
use super::workers::{Shared, Workers};
use crate::error::Result;
use crate::request::RecordsCopyRequest;

/// Records that one thread takes at a time.
const GRAIN: usize = 64;

pub fn records_copy(workers: &Workers, request: &RecordsCopyRequest) -> Result<()> {
    let RecordsCopyRequest { cache, first_layer, num_layers, num_records, src_slots, dst_slots } = *request;
    // SAFETY: the caller's arrays outlive the call.
    let (from, to) = unsafe {
        (
            Slots::checked("src_slots", src_slots, num_records, &cache)?,
            Slots::checked("dst_slots", dst_slots, num_records, &cache)?,
        )
    };
    // SAFETY: that no slot is both read and written, or written twice, is the caller's contract.
    let shared = unsafe { Shared::new((cache, from, to)) };
    let records = from.len();
    workers.for_ranges(records * num_layers, GRAIN, |copies| {
        let &(cache, from, to) = shared.get();
        let mut record = QuantisedRow::ZERO;
        for i in copies {
            let (layer, i) = (first_layer + i / records, i % records);
            let (Some(from), Some(to)) = (from.get(i), to.get(i)) else { continue };
            let pages = Pages::new(&cache, layer);
            // SAFETY: both slots were checked to lie in the cache.
            unsafe {
                pages.slot(from).read(&mut record);
                pages.slot(to).write(&record);
            }
        }
    });
    Ok(())
}
