//! Zero-fills pages, and no byte between them.

use super::device::with_context;
use super::{Cuda, Stream};
use crate::error::Result;
use crate::layout;
use crate::request::CacheView;

impl Cuda {
    /// Zero-fills every page (and no byte between pages), on `stream`.
    pub fn clear_pages(&self, cache: &CacheView, stream: Stream) -> Result<()> {
        let driver = self.device.driver();
        let (pitch, width) = (cache.page_stride as usize, layout::page_bytes(cache.page_size));
        let clear = || {
            for layer in 0..cache.num_layers {
                let base = cache.layer_base(layer) as u64;
                // SAFETY: the validated cache holds `num_pages` pages a layer, `page_stride` apart.
                unsafe { driver.cuMemsetD2D8Async(base, pitch, 0, width, cache.num_pages as usize, stream.cast()) }?;
            }
            Ok(())
        };
        Ok(with_context(driver, self.device.context(), clear)?)
    }
}
