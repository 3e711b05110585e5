//! The CPU backend: host memory, host threads, deterministic for any thread count.

mod address;
mod clear_pages;
mod decode;
mod element;
mod fetch;
mod float_env;
mod isa;
mod k_append;
mod merge;
mod page;
mod q_quant;
mod records_copy;
mod row;
mod simd;
mod slots;
mod table;
#[cfg(test)]
mod tests;
mod workers;

use self::isa::Isa;
use self::workers::Workers;
use crate::error::Result;
use crate::request::*;

pub struct Cpu {
    workers: Workers,
    isa: Isa,
}

impl Cpu {
    /// `threads` 0 means one for each core the process may use.
    pub fn new(threads: u32) -> Result<Self> {
        Ok(Self { workers: Workers::new(threads)?, isa: Isa::of_environment()? })
    }

    pub fn threads(&self) -> usize {
        self.workers.threads()
    }

    /// The instruction set in use: "avx512_bf16", "avx512", "avx2" or "portable".
    pub fn instruction_set(&self) -> &'static str {
        self.isa.name()
    }

    /// OK in the process that opened the backend.
    pub fn check_process(&self) -> Result<()> {
        self.workers.check_process()
    }

    /// Zero-fills every page (and no byte between pages).
    pub fn clear_pages(&self, cache: &CacheView) -> Result<()> {
        clear_pages::clear_pages(&self.workers, cache);
        Ok(())
    }

    pub fn decode_workspace_size(&self, limits: &DecodeLimits) -> u64 {
        decode::workspace_size(limits)
    }

    pub fn k_append(&self, request: &KAppendRequest) -> Result<()> {
        k_append::k_append(&self.workers, self.isa, request)
    }

    pub fn q_quant(&self, request: &QQuantRequest) -> Result<()> {
        q_quant::q_quant(&self.workers, self.isa, request);
        Ok(())
    }

    pub fn records_copy(&self, request: &RecordsCopyRequest) -> Result<()> {
        records_copy::records_copy(&self.workers, request)
    }

    pub fn decode(&self, request: &DecodeRequest) -> Result<()> {
        decode::decode(&self.workers, self.isa, request)
    }

    pub fn fetch_dequant(&self, request: &FetchRequest) -> Result<()> {
        fetch::fetch_dequant(&self.workers, self.isa, request)
    }

    pub fn merge(&self, request: &MergeRequest) -> Result<()> {
        merge::merge(&self.workers, self.isa, request);
        Ok(())
    }
}
