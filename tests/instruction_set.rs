//! The environment variable that bounds the CPU backend's instruction set. Alone in its process, which it changes.

use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr::null_mut;

use snapmla::abi::context::*;
use snapmla::abi::types::*;
use snapmla::abi::version::snapmla_last_error_message;

/// The instruction set of a context made now, or what is wrong with it.
fn instruction_set() -> Result<String, String> {
    let params = snapmla_context_params {
        struct_size: size_of::<snapmla_context_params>() as u32,
        flags: 0,
        backend: SNAPMLA_BACKEND_CPU,
        device_ordinal: 0,
        cpu_threads: 1,
    };
    let mut context = null_mut();
    // SAFETY: whole structs of integers, places for what is written, and strings that are NUL-terminated.
    unsafe {
        if snapmla_context_create(&params, &mut context) != SNAPMLA_STATUS_OK {
            return Err(CStr::from_ptr(snapmla_last_error_message()).to_string_lossy().into());
        }
        let mut info: snapmla_context_info = zeroed();
        info.struct_size = size_of::<snapmla_context_info>() as u32;
        assert_eq!(snapmla_context_describe(context, &mut info), SNAPMLA_STATUS_OK);
        assert_eq!(snapmla_context_destroy(context), SNAPMLA_STATUS_OK);
        Ok(CStr::from_ptr(info.name.as_ptr()).to_string_lossy().into())
    }
}

#[test]
fn an_environment_variable_bounds_it() {
    let set = |bound: &str| {
        // SAFETY: no other thread of this process reads the environment.
        unsafe { std::env::set_var("SNAPMLA_MAX_CPU_ISA", bound) }
    };
    set("portable");
    assert_eq!(instruction_set().unwrap(), "portable");
    set("avx2");
    assert!(["portable", "avx2"].contains(&instruction_set().unwrap().as_str()));
    set("sse9");
    assert!(instruction_set().unwrap_err().contains("SNAPMLA_MAX_CPU_ISA is \"sse9\""));
}
