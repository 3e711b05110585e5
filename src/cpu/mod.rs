//! The CPU backend: host memory, host threads, deterministic for any thread count.

use crate::error::{Error, Result};
use crate::request::*;

pub struct Cpu {
    threads: usize,
}

impl Cpu {
    /// `threads` 0 means one for each core the process may use.
    pub fn new(threads: u32) -> Result<Self> {
        Ok(Self { threads: threads.max(1) as usize })
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The instruction set in use: "avx512", "avx2" or "portable".
    pub fn instruction_set(&self) -> &'static str {
        "portable"
    }

    /// Zero-fills every page (and no byte between pages).
    pub fn clear_pages(&self, _cache: &CacheView) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn decode_workspace_size(&self, _limits: &DecodeLimits) -> u64 {
        0
    }

    pub fn k_append(&self, _request: &KAppendRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn q_quant(&self, _request: &QQuantRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn records_copy(&self, _request: &RecordsCopyRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn decode(&self, _request: &DecodeRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn fetch_dequant(&self, _request: &FetchRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }

    pub fn merge(&self, _request: &MergeRequest) -> Result<()> {
        Err(Error::unsupported("not built yet"))
    }
}
