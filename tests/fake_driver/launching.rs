//! What every launch has in common: stream, context, attributes, errors.

use snapmla::abi::types::*;
use snapmla::request::{Dtype, KAppendRequest, Rows};

use crate::cache::view;
use crate::harness::{cuda, device_address, with_fake_driver};

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC: u32 = 6;

pub fn request(num_tokens: i64) -> KAppendRequest {
    KAppendRequest {
        cache: view(),
        layer: 1,
        dtype: Dtype::Bf16,
        num_tokens,
        content: Rows { ptr: device_address(0, 0x100), stride: 1152 },
        rope: Rows { ptr: device_address(0, 0x500), stride: 1152 },
        slots: device_address(0, 0x800),
    }
}

with_fake_driver! {
    fn it_goes_to_the_callers_stream_in_our_context(fake) {
        let cuda = cuda();
        let stream = 0xabc0 as *mut _;
        cuda.k_append(&request(128), stream).unwrap();
        let launch = fake.launch();
        assert_eq!((launch.stream, launch.context), (stream, fake.primary(0)));
        assert_eq!(launch.attributes(), [(PROGRAMMATIC, 1)]);
        assert_eq!(fake.depth(), 0);
    }

    fn a_context_that_is_current_is_not_pushed_again(fake) {
        let cuda = cuda();
        fake.push(fake.primary(0));
        let pushes = fake.num_pushes();
        cuda.k_append(&request(128), std::ptr::null_mut()).unwrap();
        assert_eq!((fake.num_pushes(), fake.depth()), (pushes, 1));
        assert_eq!(fake.launch().context, fake.primary(0));
    }

    fn anothers_context_is_back_afterwards(fake) {
        let cuda = cuda();
        fake.push(fake.primary(1));
        let pushes = fake.num_pushes();
        cuda.k_append(&request(128), std::ptr::null_mut()).unwrap();
        assert_eq!((fake.num_pushes(), fake.depth()), (pushes + 1, 1));
        assert_eq!(fake.launch().context, fake.primary(0));
    }

    /// Drivers before 12.3 cannot capture a programmatic launch into a graph.
    fn an_older_driver_gets_an_ordinary_launch(fake) {
        fake.set_version(12020);
        cuda().k_append(&request(128), std::ptr::null_mut()).unwrap();
        assert_eq!(fake.launch().attributes(), []);
    }

    fn an_error_has_the_drivers_name_for_it(fake) {
        let cuda = cuda();
        fake.fail(c"cuLaunchKernelEx", 700, 1);
        let error = cuda.k_append(&request(128), std::ptr::null_mut()).unwrap_err();
        assert_eq!(error.status, SNAPMLA_STATUS_CUDA_ERROR);
        assert_eq!(error.message, "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        assert_eq!(fake.depth(), 0);

        fake.fail(c"cuCtxPushCurrent_v2", 201, 1);
        let error = cuda.k_append(&request(128), std::ptr::null_mut()).unwrap_err();
        assert_eq!(error.message, "cuCtxPushCurrent: CUDA_ERROR_INVALID_CONTEXT (201)");
        cuda.k_append(&request(128), std::ptr::null_mut()).unwrap();
    }

    /// A driver newer than this library may have errors of its own.
    fn an_error_without_a_name_keeps_its_number(fake) {
        let cuda = cuda();
        fake.fail(c"cuLaunchKernelEx", 12345, 1);
        let error = cuda.k_append(&request(128), std::ptr::null_mut()).unwrap_err();
        assert_eq!(error.message, "cuLaunchKernelEx: an error without a name (12345)");
    }

    fn more_rows_than_a_grid_has_blocks_are_refused(fake) {
        let error = cuda().k_append(&request(i64::MAX), std::ptr::null_mut()).unwrap_err();
        assert_eq!(error.status, SNAPMLA_STATUS_UNSUPPORTED);
        assert_eq!(fake.num_launches(), 0);
    }
}
