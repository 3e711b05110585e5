//! Whether a shared library is installed.

use std::ffi::CString;

/// Loads library `name` ("cuda", "nvrtc") under the first of cudarc's names for it that is found, and never unloads it.
///
/// cudarc panics where there is none. Its own check unloads the library again, which neither the driver nor NVRTC is
/// made for, and loads it a second time.
pub fn is_installed(name: &str) -> bool {
    cudarc::get_lib_name_candidates(name).into_iter().filter_map(|file| CString::new(file).ok()).any(|file| {
        // SAFETY: loading the driver or NVRTC runs its constructors, as in every CUDA program.
        !unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }.is_null()
    })
}
