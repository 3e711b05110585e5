//! A backend opened for use: the library's context and the memory it works on.

use std::rc::Rc;

use clap::{Args, ValueEnum};
use serde::Serialize;
use snapmla::abi::types::*;

use crate::api::{self, Context, Info};
use crate::cuda::Gpu;
use crate::failure::Result;
use crate::memory::Place;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// CUDA where there is a Hopper GPU, the CPU otherwise
    Auto,
    Cpu,
    Cuda,
}

/// Which backend to use, and how.
#[derive(Args, Clone)]
pub struct Options {
    /// Backend to run on
    #[arg(long, global = true, value_enum, default_value = "auto")]
    backend: Backend,
    /// CUDA device ordinal
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub device: i32,
    /// Threads of the CPU backend; 0 means one for each core
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    threads: u32,
}

pub struct Engine {
    pub context: Rc<Context>,
    pub place: Place,
    pub info: Info,
}

/// The device as reports show it.
#[derive(Serialize, Clone)]
pub struct Device {
    pub backend: &'static str,
    pub name: String,
    /// Threads, or streaming multiprocessors.
    pub parallelism: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_cuda: Option<String>,
}

impl Engine {
    pub fn open(options: &Options) -> Result<Self> {
        let backend = match options.backend {
            Backend::Auto => SNAPMLA_BACKEND_AUTO,
            Backend::Cpu => SNAPMLA_BACKEND_CPU,
            Backend::Cuda => SNAPMLA_BACKEND_CUDA,
        };
        let options = api::Options { backend, device: options.device, threads: options.threads };
        let context = Context::create(&options)?;
        let info = context.describe()?;
        let place = match info.backend {
            SNAPMLA_BACKEND_CUDA => Place::Gpu(Gpu::open(info.device)?),
            _ => Place::Host,
        };
        Ok(Self { context, place, info })
    }

    pub fn on_gpu(&self) -> bool {
        matches!(self.place, Place::Gpu(_))
    }

    pub fn device(&self) -> Device {
        let (backend, driver_cuda) = match &self.place {
            Place::Host => ("cpu", None),
            Place::Gpu(gpu) => ("cuda", Some(gpu.driver_version())),
        };
        Device { backend, name: self.info.name.clone(), parallelism: self.info.parallelism, driver_cuda }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = if self.backend == "cuda" { "SMs" } else { "threads" };
        write!(f, "{} ({}, {} {unit})", self.backend, self.name, self.parallelism)
    }
}
