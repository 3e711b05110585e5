//! Version, status texts, and the message of the last failure.

use std::os::raw::c_char;

use super::types::*;
use crate::error;

/// The library's `SNAPMLA_ABI_VERSION`. A caller built against an equal or smaller one is served in full; a newer
/// caller is served as long as it asks for nothing that this library lacks. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn snapmla_abi_version() -> u32 {
    SNAPMLA_ABI_VERSION
}

/// The library's version, "major.minor.patch". A static string: never freed. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn snapmla_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What a status means, in a few English words; for a number that is no status, "unknown status". A static string:
/// never freed. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn snapmla_status_string(status: snapmla_status) -> *const c_char {
    let text = match status {
        SNAPMLA_STATUS_OK => c"success",
        SNAPMLA_STATUS_INVALID_ARGUMENT => c"invalid argument",
        SNAPMLA_STATUS_UNSUPPORTED => c"not supported",
        SNAPMLA_STATUS_UNAVAILABLE => c"backend not available",
        SNAPMLA_STATUS_VERSION_MISMATCH => c"caller newer than library",
        SNAPMLA_STATUS_WORKSPACE_TOO_SMALL => c"workspace too small",
        SNAPMLA_STATUS_INVALID_HANDLE => c"invalid handle",
        SNAPMLA_STATUS_OUT_OF_MEMORY => c"out of memory",
        SNAPMLA_STATUS_CUDA_ERROR => c"CUDA error",
        SNAPMLA_STATUS_INTERNAL => c"internal error",
        _ => c"unknown status",
    };
    text.as_ptr()
}

/// What was wrong with the calling thread's last failing call: the parameter's name, its value and the value
/// wanted. Never NULL; "" when no call of this thread has failed. A call that succeeds leaves the message as it
/// was, so look at the status first. The string is the library's: one place for each thread, valid until the thread's
/// end, which the thread's next failing call writes over. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn snapmla_last_error_message() -> *const c_char {
    error::last_message()
}
