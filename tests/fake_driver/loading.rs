//! How the kernels reach the driver.

use snapmla::cuda::Cuda;

use crate::harness::{Fake, cuda, with_fake_driver};

/// Kernels that must have been loaded, and the folder's count of `.cu` files.
fn check_all_loaded(fake: &Fake, binds: u32) {
    let kernels = fake.kernels();
    for name in ["snapmla_k_append_bf16", "snapmla_q_quant_f16", "snapmla_fetch_dequant_f32", "snapmla_records_copy"]
    {
        assert!(kernels.iter().any(|k| k.name() == name), "{name}");
    }
    for kernel in kernels {
        assert_eq!(kernel.num_binds, binds, "{}", kernel.name());
    }
    assert_eq!(fake.depth(), 0);
}

fn num_units() -> u32 {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/cuda")).unwrap();
    folder.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "cu")).count() as u32
}

with_fake_driver! {
    /// The driver loads lazily; a first launch inside a stream capture must find everything there.
    fn every_kernel_is_loaded_before_the_first_launch(fake) {
        let _cuda = cuda();
        assert_eq!(fake.num_libraries(), num_units());
        // Once to see whether the driver takes the code, once for the device.
        check_all_loaded(fake, 2);
    }

    fn the_code_is_loaded_once_a_process_and_the_kernels_once_a_context(fake) {
        let (_a, _b) = (cuda(), Cuda::open(1, false).unwrap());
        assert_eq!(fake.num_libraries(), num_units());
        check_all_loaded(fake, 3);
    }

    fn a_failed_load_is_tried_again(fake) {
        fake.fail(c"cuLibraryLoadData", 2, 1);
        let error = Cuda::open(0, false).err().unwrap();
        assert_eq!(error.message, "cuLibraryLoadData: CUDA_ERROR_OUT_OF_MEMORY (2)");
        assert_eq!(fake.retains(0), 0);
        cuda();
    }

    /// As with a driver older than the toolkit that built the library, or a library built without one.
    fn code_that_the_driver_refuses_is_compiled_by_nvrtc(fake) {
        fake.set_elf_result(222);
        let _cuda = cuda();
        check_all_loaded(fake, 2);
        let (options, compiled) = fake.nvrtc();
        assert_eq!(options, "--gpu-architecture=sm_90a --std=c++17 --device-as-default-execution-space ");
        assert_eq!(compiled as u32, num_units());
    }

    fn another_refusal_is_not_hidden_by_compiling(fake) {
        fake.fail(c"cuKernelGetFunction", 700, 1);
        let error = Cuda::open(0, false).err().unwrap();
        assert_eq!(error.message, "cuKernelGetFunction: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        assert_eq!(fake.depth(), 0);
    }
}
