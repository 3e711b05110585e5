//! A backend under test: the library's context and the memory and stream that go with it.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use snapmla::abi;
use snapmla::abi::types::*;

use crate::case::Geometry;
use crate::device::{Cuda, Stream};
use crate::memory::{Buffer, Memory, Result, cuda, host};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Cpu,
    Cuda,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Cuda => "cuda",
        }
    }
}

pub struct Backend {
    pub kind: Kind,
    /// What `snapmla_context_describe` calls it.
    pub name: String,
    pub cuda: Option<Arc<Cuda>>,
    pub memory: Arc<dyn Memory>,
    /// The stream of every call that does not bring its own.
    pub stream: Stream,
    context: *mut abi::context::snapmla_context,
}

// SAFETY: "Handles may be used from several threads at once".
unsafe impl Send for Backend {}
// SAFETY: as above.
unsafe impl Sync for Backend {}

/// A struct of the ABI as its initialiser macro leaves it: zeros, and its size.
macro_rules! init {
    ($type:ty) => {{
        // SAFETY: integers and pointers.
        let mut params: $type = unsafe { std::mem::zeroed() };
        params.struct_size = size_of::<$type>() as u32;
        params
    }};
}
pub(crate) use init;

/// A status as a result, with the library's message.
pub fn status(call: &str, status: snapmla_status) -> Result<()> {
    if status == SNAPMLA_STATUS_OK {
        return Ok(());
    }
    // SAFETY: valid until this thread's next failing call.
    let message = unsafe { CStr::from_ptr(abi::version::snapmla_last_error_message()) };
    Err(format!("{call}: status {status}: {}", message.to_string_lossy()))
}

impl Backend {
    pub fn cpu() -> Result<Self> {
        Self::cpu_with_threads(0)
    }

    pub fn cpu_with_threads(threads: u32) -> Result<Self> {
        let context = open(SNAPMLA_BACKEND_CPU, threads)?;
        let name = describe(context)?;
        let memory = Arc::new(host::Host);
        Ok(Self { kind: Kind::Cpu, name, cuda: None, memory, stream: Stream::host(), context })
    }

    /// An error where the machine has no Hopper device or no driver.
    pub fn cuda() -> Result<Self> {
        let cuda = Cuda::open(0)?;
        cuda.enter()?;
        let context = open(SNAPMLA_BACKEND_CUDA, 0)?;
        let name = describe(context)?;
        let (memory, stream) = (Arc::new(cuda::Device(cuda.clone())), cuda.stream()?);
        Ok(Self { kind: Kind::Cuda, name, cuda: Some(cuda), memory, stream, context })
    }

    pub fn is_cpu(&self) -> bool {
        self.kind == Kind::Cpu
    }

    pub fn new_stream(&self) -> Result<Stream> {
        self.cuda.as_ref().map_or_else(|| Ok(Stream::host()), Cuda::stream)
    }

    pub fn buffer(&self, bytes: &[u8]) -> Result<Buffer> {
        Buffer::holding(&self.memory, bytes)
    }

    pub fn workspace_size(&self, limits: &snapmla_decode_limits) -> Result<usize> {
        let mut size = 0;
        // SAFETY: a live context, an initialised struct, an out pointer.
        let code = unsafe { abi::decode::snapmla_decode_workspace_size(self.context, limits, &mut size) };
        status("snapmla_decode_workspace_size", code)?;
        Ok(size as usize)
    }

    /// # Safety
    /// The pointers in `params` reach what the header says.
    pub unsafe fn decode(&self, cache: &Cache, params: &snapmla_decode_params, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_decode", unsafe {
            abi::decode::snapmla_decode(self.context, cache.handle, params, stream.raw())
        })
    }

    /// # Safety
    /// As for `decode`.
    pub unsafe fn k_append(&self, cache: &Cache, params: &snapmla_k_append_params, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_k_append", unsafe {
            abi::k_append::snapmla_k_append(self.context, cache.handle, params, stream.raw())
        })
    }

    /// # Safety
    /// As for `decode`.
    pub unsafe fn q_quant(&self, params: &snapmla_q_quant_params, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_q_quant", unsafe { abi::q_quant::snapmla_q_quant(self.context, params, stream.raw()) })
    }

    /// # Safety
    /// As for `decode`.
    pub unsafe fn records_copy(
        &self,
        cache: &Cache,
        params: &snapmla_records_copy_params,
        stream: &Stream,
    ) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_records_copy", unsafe {
            abi::records_copy::snapmla_records_copy(self.context, cache.handle, params, stream.raw())
        })
    }

    /// # Safety
    /// As for `decode`.
    pub unsafe fn fetch(&self, cache: &Cache, params: &snapmla_fetch_params, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_fetch_dequant", unsafe {
            abi::fetch::snapmla_fetch_dequant(self.context, cache.handle, params, stream.raw())
        })
    }

    /// # Safety
    /// As for `decode`.
    pub unsafe fn merge(&self, params: &snapmla_merge_params, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: the caller's.
        status("snapmla_merge", unsafe { abi::merge::snapmla_merge(self.context, params, stream.raw()) })
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // SAFETY: made by `open`, once.
        unsafe { abi::context::snapmla_context_destroy(self.context) };
    }
}

fn open(backend: u32, threads: u32) -> Result<*mut abi::context::snapmla_context> {
    let mut params = init!(snapmla_context_params);
    (params.backend, params.cpu_threads) = (backend, threads);
    let mut context = std::ptr::null_mut();
    // SAFETY: an initialised struct, an out pointer.
    status("snapmla_context_create", unsafe { abi::context::snapmla_context_create(&params, &mut context) })?;
    Ok(context)
}

fn describe(context: *mut abi::context::snapmla_context) -> Result<String> {
    let mut info = init!(snapmla_context_info);
    // SAFETY: a live context, an initialised struct.
    status("snapmla_context_describe", unsafe { abi::context::snapmla_context_describe(context, &mut info) })?;
    // SAFETY: NUL-terminated.
    let name = unsafe { CStr::from_ptr(info.name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(format!("{name}, {} wide", info.parallelism))
}

/// A cache handle over memory of its own.
pub struct Cache {
    pub geometry: Geometry,
    pub memory: Buffer,
    handle: *mut abi::cache::snapmla_cache,
}

// SAFETY: "Handles may be used from several threads at once".
unsafe impl Send for Cache {}
// SAFETY: as above.
unsafe impl Sync for Cache {}

impl Cache {
    /// Over `memory`, which holds at least the geometry's span. `keep`: leave its contents as they are.
    pub fn over(backend: &Backend, geometry: Geometry, memory: Buffer, keep: bool) -> Result<Self> {
        let mut params = init!(snapmla_cache_params);
        params.flags = if keep { SNAPMLA_CACHE_KEEP_CONTENTS } else { 0 };
        params.page_size = geometry.page_size as u32;
        params.num_layers = geometry.num_layers as u32;
        params.num_pages = geometry.num_pages as i64;
        if !geometry.packed {
            (params.page_stride, params.layer_stride) = (geometry.page_stride, geometry.layer_stride);
        }
        let mut size = 0;
        // SAFETY: an initialised struct, an out pointer.
        status("snapmla_cache_size", unsafe { abi::cache::snapmla_cache_size(&params, &mut size) })?;
        if size != geometry.span() as u64 {
            return Err(format!("snapmla_cache_size says {size}, not {}", geometry.span()));
        }
        params.memory = memory.at::<c_void>(0);
        params.memory_size = memory.len() as u64;
        let mut handle = std::ptr::null_mut();
        backend.stream.enter()?;
        // SAFETY: a live context, memory that outlives the handle.
        status("snapmla_cache_init", unsafe {
            abi::cache::snapmla_cache_init(backend.context, &params, backend.stream.raw(), &mut handle)
        })?;
        backend.stream.wait()?;
        Ok(Self { geometry, memory, handle })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: made by `over`, once.
        unsafe { abi::cache::snapmla_cache_destroy(self.handle) };
    }
}
