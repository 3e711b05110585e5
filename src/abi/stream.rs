//! The caller's stream.

/// A `cudaStream_t` or `CUstream`; the header spells it so that both pass without a cast.
#[allow(non_camel_case_types)]
pub type snapmla_stream = *mut std::os::raw::c_void;
