//! Pointer checks, always at cache init and for every call in a context opened with them.

use snapmla::abi::types::*;
use snapmla::cuda::Cuda;
use snapmla::request::Rows;

use crate::harness::{cuda, device_address, with_fake_driver};
use crate::launching;

with_fake_driver! {
    fn memory_that_the_device_reaches_is_accepted(_fake) {
        let cuda = cuda();
        let pinned = 0x2000_0000_0000u64;
        let managed_by_another = 0x3100_0000_0000u64;
        for address in [device_address::<u8>(0, 16) as u64, pinned, managed_by_another] {
            cuda.check_device_pointer("memory", address as *const u8).unwrap();
        }
    }

    fn other_memory_is_refused_by_name(fake) {
        let cuda = cuda();
        let host = 0x7f00_1234_5670u64 as *const u8;
        let error = cuda.check_device_pointer("memory", host).unwrap_err();
        assert_eq!(error.status, SNAPMLA_STATUS_INVALID_ARGUMENT);
        assert_eq!(
            error.message,
            "memory is 0x7f0012345670, which is not CUDA memory, and device 0 cannot reach it"
        );
        let error = cuda.check_device_pointer("memory", device_address(1, 16)).unwrap_err();
        assert_eq!(
            error.message,
            "memory is 0x110000000010, memory of device 1, and the context is device 0's"
        );
        fake.share_host_page_tables();
        cuda.check_device_pointer("memory", host).unwrap();
    }

    fn every_pointer_is_checked_where_asked_for(fake) {
        let checking = Cuda::open(0, true).unwrap();
        let stream = std::ptr::null_mut();
        checking.k_append(&launching::request(1), stream).unwrap();
        for name in ["content", "rope", "slots"] {
            let mut request = launching::request(1);
            let host = 0x7000_0000_0000u64;
            match name {
                "content" => request.content = Rows { ptr: host as *const u8, stride: 1152 },
                "rope" => request.rope = Rows { ptr: host as *const u8, stride: 128 },
                _ => request.slots = host as *const i64,
            }
            let error = checking.k_append(&request, stream).unwrap_err();
            assert!(error.message.starts_with(name), "{error}");
            cuda().k_append(&request, stream).unwrap();
        }
        assert_eq!(fake.num_launches(), 4);
    }

    fn the_drivers_own_trouble_is_told(fake) {
        let cuda = cuda();
        fake.fail(c"cuPointerGetAttribute", 700, 1);
        let error = cuda.check_device_pointer("memory", device_address(0, 16)).unwrap_err();
        assert_eq!(error.message, "cuPointerGetAttribute: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    }
}
