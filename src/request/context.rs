//! A context: which backend, on what.

use super::checks;
use crate::abi::types::*;
use crate::error::{Error, Result};

/// More than any machine has cores; a larger number is an uninitialised field.
const MAX_CPU_THREADS: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Auto,
    Cpu,
    Cuda,
}

impl Which {
    pub fn from_param(value: snapmla_backend) -> Result<Self> {
        match value {
            SNAPMLA_BACKEND_AUTO => Ok(Which::Auto),
            SNAPMLA_BACKEND_CPU => Ok(Which::Cpu),
            SNAPMLA_BACKEND_CUDA => Ok(Which::Cuda),
            _ => Err(Error::invalid(format!(
                "backend {value} is none of {SNAPMLA_BACKEND_AUTO} (AUTO), {SNAPMLA_BACKEND_CPU} (CPU), \
                 {SNAPMLA_BACKEND_CUDA} (CUDA)"
            ))),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ContextRequest {
    pub backend: Which,
    /// Of the CUDA device; the CPU backend has none.
    pub device_ordinal: i32,
    /// 0 means one for each core.
    pub cpu_threads: u32,
    pub check_pointers: bool,
}

impl ContextRequest {
    pub fn from_params(params: &snapmla_context_params) -> Result<Self> {
        checks::flags("flags", params.flags, SNAPMLA_CONTEXT_CHECK_POINTERS)?;
        let backend = Which::from_param(params.backend)?;
        if params.cpu_threads > MAX_CPU_THREADS {
            return Err(Error::invalid(format!("cpu_threads {} is more than {MAX_CPU_THREADS}", params.cpu_threads)));
        }
        Ok(Self {
            backend,
            device_ordinal: device_ordinal(backend, params.device_ordinal)?,
            cpu_threads: params.cpu_threads,
            check_pointers: params.flags & SNAPMLA_CONTEXT_CHECK_POINTERS != 0,
        })
    }
}

/// The CPU backend ignores the ordinal, whatever it is.
pub fn device_ordinal(backend: Which, value: i32) -> Result<i32> {
    if backend != Which::Cpu && value < 0 {
        return Err(Error::invalid(format!("device_ordinal {value} is less than 0")));
    }
    Ok(value)
}
