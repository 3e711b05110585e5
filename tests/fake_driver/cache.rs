//! A cache view on the stand-in's device memory.

use snapmla::request::CacheView;

use crate::harness::{cuda, device_address, with_fake_driver};

pub const PAGE_SIZE: usize = 64;
pub const PAGE_STRIDE: i64 = 50_000;
pub const NUM_PAGES: i64 = 10;
pub const LAYER_STRIDE: i64 = NUM_PAGES * PAGE_STRIDE;

pub fn view() -> CacheView {
    CacheView {
        memory: device_address(0, 0x10_0000),
        page_size: PAGE_SIZE,
        num_pages: NUM_PAGES,
        num_layers: 3,
        page_stride: PAGE_STRIDE,
        layer_stride: LAYER_STRIDE,
    }
}

/// ceil(2^63 / n), which the kernels divide by n with.
pub fn divisor(n: u64) -> u64 {
    (1u64 << 63).div_ceil(n)
}

with_fake_driver! {
    fn clearing_writes_the_pages_and_nothing_between(fake) {
        let cuda = cuda();
        let stream = 0xabc0 as *mut _;
        cuda.clear_pages(&view(), stream).unwrap();
        let memsets = fake.memsets();
        assert_eq!(memsets.len(), 3);
        for (layer, memset) in memsets.iter().enumerate() {
            assert_eq!(memset.dst, view().memory as u64 + layer as u64 * LAYER_STRIDE as u64);
            assert_eq!((memset.pitch, memset.width, memset.height), (PAGE_STRIDE as u64, 644 * 64, NUM_PAGES as u64));
            assert_eq!((memset.value, memset.stream, memset.context), (0, stream, fake.primary(0)));
        }
        assert_eq!(fake.depth(), 0);
    }

    fn clearing_reports_the_drivers_error(fake) {
        let cuda = cuda();
        fake.fail(c"cuMemsetD2D8Async", 1, 1);
        let error = cuda.clear_pages(&view(), std::ptr::null_mut()).unwrap_err();
        assert_eq!(error.message, "cuMemsetD2D8Async: CUDA_ERROR_INVALID_VALUE (1)");
        assert_eq!(fake.depth(), 0);
    }
}
