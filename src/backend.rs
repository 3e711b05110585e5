//! The backend of a context: the one place that knows there are two.

use crate::abi::snapmla_stream;
use crate::cpu::Cpu;
use crate::cuda::Cuda;
use crate::error::{Error, Result};
use crate::request::*;

pub enum Backend {
    Cpu(Cpu),
    Cuda(Cuda),
}

impl Backend {
    pub fn open(request: &ContextRequest) -> Result<Self> {
        let cpu = || Cpu::new(request.cpu_threads).map(Self::Cpu);
        let cuda = || Cuda::open(request.device_ordinal, request.check_pointers).map(Self::Cuda);
        match request.backend {
            Which::Cpu => cpu(),
            Which::Cuda => cuda(),
            Which::Auto => cuda().or_else(|_| cpu()),
        }
    }

    /// OK, or why the backend cannot be opened.
    pub fn available(backend: Which, device_ordinal: i32) -> Result<()> {
        match backend {
            Which::Auto | Which::Cpu => Ok(()),
            Which::Cuda => {
                Cuda::open(device_ordinal, false).map(drop).map_err(|error| Error::unavailable(error.message))
            }
        }
    }

    /// Readies a new cache's memory on `stream`.
    pub fn init_cache(&self, cache: &CacheView, clear: bool, stream: snapmla_stream) -> Result<()> {
        self.launch(
            stream,
            |cpu| if clear { cpu.clear_pages(cache) } else { Ok(()) },
            |cuda| {
                cuda.check_device_pointer("memory", cache.memory)?;
                if clear { cuda.clear_pages(cache, stream) } else { Ok(()) }
            },
        )
    }

    pub fn decode_workspace_size(&self, limits: &DecodeLimits) -> u64 {
        match self {
            Self::Cpu(cpu) => cpu.decode_workspace_size(limits),
            Self::Cuda(cuda) => cuda.decode_workspace_size(limits),
        }
    }

    /// OK, or why a decode cannot have so many rows a sequence.
    pub fn check_rows(&self, q_len: u32, num_heads: u32) -> Result<()> {
        match self {
            Self::Cpu(_) => Ok(()),
            Self::Cuda(cuda) => cuda.check_rows(q_len, num_heads),
        }
    }

    /// OK, or why a decode cannot find its tokens by slots.
    pub fn check_slots(&self, over_slots: bool) -> Result<()> {
        match self {
            Self::Cuda(_) if over_slots => {
                Err(Error::unsupported("decode over slots is not served by the CUDA backend yet: give a block_table"))
            }
            _ => Ok(()),
        }
    }

    pub fn k_append(&self, request: &KAppendRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(
            request.num_tokens,
            stream,
            |cpu| cpu.k_append(request),
            |cuda| cuda.k_append(request, stream),
        )
    }

    pub fn q_quant(&self, request: &QQuantRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(request.num_tokens, stream, |cpu| cpu.q_quant(request), |cuda| cuda.q_quant(request, stream))
    }

    pub fn records_copy(&self, request: &RecordsCopyRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(
            request.num_records,
            stream,
            |cpu| cpu.records_copy(request),
            |cuda| cuda.records_copy(request, stream),
        )
    }

    pub fn decode(&self, request: &DecodeRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(
            i64::from(request.batch),
            stream,
            |cpu| cpu.decode(request),
            |cuda| {
                self.check_slots(!request.slots.ptr.is_null())?;
                cuda.decode(request, stream)
            },
        )
    }

    pub fn fetch_dequant(&self, request: &FetchRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(
            request.most_rows(),
            stream,
            |cpu| cpu.fetch_dequant(request),
            |cuda| cuda.fetch_dequant(request, stream),
        )
    }

    pub fn merge(&self, request: &MergeRequest, stream: snapmla_stream) -> Result<()> {
        self.launch_some(request.num_tokens, stream, |cpu| cpu.merge(request), |cuda| cuda.merge(request, stream))
    }

    /// A call with nothing to do launches nothing (CUDA refuses empty grids), but its arguments are still checked.
    fn launch_some(
        &self,
        count: i64,
        stream: snapmla_stream,
        cpu: impl FnOnce(&Cpu) -> Result<()>,
        cuda: impl FnOnce(&Cuda) -> Result<()>,
    ) -> Result<()> {
        self.launch(
            stream,
            |backend| if count == 0 { Ok(()) } else { cpu(backend) },
            |backend| if count == 0 { Ok(()) } else { cuda(backend) },
        )
    }

    fn launch(
        &self,
        stream: snapmla_stream,
        cpu: impl FnOnce(&Cpu) -> Result<()>,
        cuda: impl FnOnce(&Cuda) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Cpu(backend) => {
                if !stream.is_null() {
                    return Err(Error::invalid(format!(
                        "stream {stream:p} is not NULL, as it must be on the CPU backend"
                    )));
                }
                backend.check_process()?;
                cpu(backend)
            }
            Self::Cuda(backend) => cuda(backend),
        }
    }
}
