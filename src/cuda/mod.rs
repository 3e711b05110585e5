//! The CUDA backend: Hopper (sm_90a), the caller's streams, nothing allocated or synchronised on the launch path.

use std::os::raw::c_void;

use crate::error::{Error, Result};
use crate::request::*;

/// A `CUstream` of the caller's.
pub type Stream = *mut c_void;

pub struct Cuda {
    ordinal: i32,
}

impl Cuda {
    /// Finds the driver and the device, loads the kernels. The error says what is missing.
    pub fn open(ordinal: i32, _check_pointers: bool) -> Result<Self> {
        let _ = Self { ordinal };
        Err(Error::unavailable("not built yet"))
    }

    pub fn ordinal(&self) -> i32 {
        self.ordinal
    }

    pub fn device_name(&self) -> &str {
        ""
    }

    pub fn num_sms(&self) -> u32 {
        0
    }

    /// Refuses memory that the device cannot reach.
    pub fn check_device_pointer(&self, _name: &str, _ptr: *const u8) -> Result<()> {
        Ok(())
    }

    /// Zero-fills every page (and no byte between pages), on `stream`.
    pub fn clear_pages(&self, _cache: &CacheView, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn decode_workspace_size(&self, _limits: &DecodeLimits) -> u64 {
        0
    }

    pub fn k_append(&self, _request: &KAppendRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn q_quant(&self, _request: &QQuantRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn records_copy(&self, _request: &RecordsCopyRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn decode(&self, _request: &DecodeRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn fetch_dequant(&self, _request: &FetchRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn merge(&self, _request: &MergeRequest, _stream: Stream) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }
}
