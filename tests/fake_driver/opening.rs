//! What `Cuda::open` finds, and what it says when it does not.

use snapmla::abi::types::*;
use snapmla::cuda::Cuda;
use snapmla::error::Error;

use crate::harness::{cuda, with_fake_driver};

fn refusal() -> Error {
    Cuda::open(0, false).err().expect("refused")
}

with_fake_driver! {
    fn the_device_is_described(fake) {
        let cuda = Cuda::open(1, false).unwrap();
        assert_eq!((cuda.ordinal(), cuda.device_name(), cuda.num_sms()), (1, "Stand-in H200", 132));
        assert_eq!((fake.retains(0), fake.retains(1)), (0, 1));
        drop(cuda);
        assert_eq!(fake.retains(1), 0);
    }

    fn every_open_is_a_retain_of_its_own(fake) {
        let (first, second) = (cuda(), cuda());
        assert_eq!(fake.retains(0), 2);
        drop(first);
        assert_eq!(fake.retains(0), 1);
        drop(second);
    }

    fn an_old_driver_is_named(fake) {
        fake.set_version(11080);
        let error = refusal();
        assert_eq!(error.status, SNAPMLA_STATUS_UNAVAILABLE);
        assert_eq!(error.message, "the CUDA driver serves CUDA 11.8, older than 12.0");
    }

    fn a_driver_without_a_device_is_named_and_tried_again(fake) {
        fake.fail(c"cuInit", 100, 1);
        let error = refusal();
        assert_eq!(error.status, SNAPMLA_STATUS_UNAVAILABLE);
        assert_eq!(error.message, "cuInit: CUDA_ERROR_NO_DEVICE (100)");
        cuda();
    }

    fn a_device_of_another_kind_is_named(fake) {
        fake.set_capability(8, 0);
        let error = refusal();
        assert_eq!(error.status, SNAPMLA_STATUS_UNAVAILABLE);
        assert_eq!(
            error.message,
            "device 0 (Stand-in H200) has compute capability 8.0; the kernels need 9.0 (Hopper)"
        );
        assert_eq!(fake.retains(0), 0);
    }

    fn a_device_that_is_not_there_is_named(_fake) {
        let error = Cuda::open(2, false).err().unwrap();
        assert_eq!(error.status, SNAPMLA_STATUS_UNAVAILABLE);
        assert_eq!(error.message, "device_ordinal is 2, and CUDA sees 2 devices");
        assert_eq!(Cuda::open(-1, false).err().unwrap().status, SNAPMLA_STATUS_INVALID_ARGUMENT);
    }

    fn a_context_that_cannot_be_had_is_out_of_memory(fake) {
        fake.fail(c"cuDevicePrimaryCtxRetain", 2, 1);
        let error = refusal();
        assert_eq!(error.status, SNAPMLA_STATUS_OUT_OF_MEMORY);
        assert_eq!(error.message, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)");
    }
}
