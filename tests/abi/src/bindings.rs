//! The library as a Rust program would declare it, for ctest2 to compare with the header.
//!
//! In the grammar that ctest2 reads, which is Rust of 2017: it passes over what it cannot parse, so nothing newer here.

use std::os::raw::{c_char, c_void};

#[path = "../../../src/abi/types.rs"]
pub mod types;
pub use self::types::*;

pub type snapmla_stream = *mut c_void;

pub enum snapmla_context {}
pub enum snapmla_cache {}

extern "C" {
    pub fn snapmla_abi_version() -> u32;
    pub fn snapmla_version() -> *const c_char;
    pub fn snapmla_status_string(status: snapmla_status) -> *const c_char;
    pub fn snapmla_last_error_message() -> *const c_char;
    pub fn snapmla_backend_available(backend: snapmla_backend, device_ordinal: i32) -> snapmla_status;
    pub fn snapmla_context_create(
        params: *const snapmla_context_params,
        out: *mut *mut snapmla_context,
    ) -> snapmla_status;
    pub fn snapmla_context_destroy(context: *mut snapmla_context) -> snapmla_status;
    pub fn snapmla_context_describe(
        context: *const snapmla_context,
        info: *mut snapmla_context_info,
    ) -> snapmla_status;
    pub fn snapmla_supports(context: *const snapmla_context, query: *const snapmla_support_query) -> snapmla_status;
    pub fn snapmla_cache_size(params: *const snapmla_cache_params, size: *mut u64) -> snapmla_status;
    pub fn snapmla_cache_init(
        context: *mut snapmla_context,
        params: *const snapmla_cache_params,
        stream: snapmla_stream,
        out: *mut *mut snapmla_cache,
    ) -> snapmla_status;
    pub fn snapmla_cache_destroy(cache: *mut snapmla_cache) -> snapmla_status;
    pub fn snapmla_k_append(
        context: *mut snapmla_context,
        cache: *mut snapmla_cache,
        params: *const snapmla_k_append_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
    pub fn snapmla_q_quant(
        context: *mut snapmla_context,
        params: *const snapmla_q_quant_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
    pub fn snapmla_records_copy(
        context: *mut snapmla_context,
        cache: *mut snapmla_cache,
        params: *const snapmla_records_copy_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
    pub fn snapmla_decode_workspace_size(
        context: *const snapmla_context,
        limits: *const snapmla_decode_limits,
        size: *mut u64,
    ) -> snapmla_status;
    pub fn snapmla_decode(
        context: *mut snapmla_context,
        cache: *const snapmla_cache,
        params: *const snapmla_decode_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
    pub fn snapmla_fetch_dequant(
        context: *mut snapmla_context,
        cache: *const snapmla_cache,
        params: *const snapmla_fetch_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
    pub fn snapmla_merge(
        context: *mut snapmla_context,
        params: *const snapmla_merge_params,
        stream: snapmla_stream,
    ) -> snapmla_status;
}
