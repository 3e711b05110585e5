//! Zero-fills pages, and leaves the bytes between them alone: they are the caller's.

use super::workers::{Shared, Workers};
use crate::layout::page_bytes;
use crate::request::CacheView;

/// Bytes that one thread takes at a time, roughly.
const GRAIN_BYTES: usize = 1 << 20;

pub fn clear_pages(workers: &Workers, cache: &CacheView) {
    let bytes = page_bytes(cache.page_size);
    let pages = cache.num_pages.max(0) as usize;
    // SAFETY: pages do not overlap, and each is written by the one thread that has its index.
    let shared = unsafe { Shared::new(*cache) };
    workers.for_ranges(pages * cache.num_layers, GRAIN_BYTES.div_ceil(bytes), |range| {
        let cache = shared.get();
        for i in range {
            let base = cache.layer_base(i / pages);
            let page = base.wrapping_offset((i % pages) as isize * cache.page_stride as isize);
            // SAFETY: the cache's memory holds every page of every layer.
            unsafe { page.write_bytes(0, bytes) };
        }
    });
}
