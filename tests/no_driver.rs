//! A machine without NVIDIA's driver: the CUDA backend says why it is not there, and AUTO is the CPU.

use std::ffi::CStr;
use std::ptr::null_mut;

use snapmla::abi::context::*;
use snapmla::abi::types::*;
use snapmla::abi::version::snapmla_last_error_message;

/// Whether the loader finds a driver.
fn driver_is_there() -> bool {
    [c"libcuda.so", c"libcuda.so.1"].iter().any(|name| {
        // SAFETY: a C string; loading the driver has no effect but its presence.
        !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) }.is_null()
    })
}

fn create(backend: snapmla_backend) -> (snapmla_status, *mut snapmla_context) {
    let params = snapmla_context_params {
        struct_size: size_of::<snapmla_context_params>() as u32,
        flags: 0,
        backend,
        device_ordinal: 0,
        cpu_threads: 1,
    };
    let mut context = null_mut();
    // SAFETY: a whole struct and a place for the handle.
    let status = unsafe { snapmla_context_create(&params, &mut context) };
    (status, context)
}

fn message() -> String {
    // SAFETY: a C string, valid until this thread's next failure.
    unsafe { CStr::from_ptr(snapmla_last_error_message()) }.to_str().expect("UTF-8").to_owned()
}

#[test]
fn cuda_is_unavailable_and_auto_is_the_cpu() {
    if driver_is_there() {
        eprintln!("skipped: this machine has a driver");
        return;
    }
    assert_eq!(snapmla_backend_available(SNAPMLA_BACKEND_CUDA, 0), SNAPMLA_STATUS_UNAVAILABLE);
    assert!(message().contains("libcuda"), "{}", message());
    assert_eq!(create(SNAPMLA_BACKEND_CUDA), (SNAPMLA_STATUS_UNAVAILABLE, null_mut()));
    assert!(message().contains("libcuda"), "{}", message());

    let (status, context) = create(SNAPMLA_BACKEND_AUTO);
    assert_eq!(status, SNAPMLA_STATUS_OK);
    let mut info = snapmla_context_info {
        struct_size: size_of::<snapmla_context_info>() as u32,
        backend: 0,
        device_ordinal: 0,
        parallelism: 0,
        name: [1; 128],
    };
    // SAFETY: a live handle and a whole struct.
    unsafe {
        assert_eq!(snapmla_context_describe(context, &mut info), SNAPMLA_STATUS_OK);
        assert_eq!((info.backend, info.device_ordinal, info.parallelism), (SNAPMLA_BACKEND_CPU, -1, 1));
        let name = CStr::from_ptr(info.name.as_ptr()).to_str();
        assert!(matches!(name, Ok("avx512_bf16" | "avx512" | "avx2" | "portable")), "{name:?}");
        assert_eq!(snapmla_context_destroy(context), SNAPMLA_STATUS_OK);
    }
}
