//! Contexts: a backend, opened once and shared by threads and caches.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use super::guard::guard;
use super::handle::{self, Cell, Guarded};
use super::types::*;
use super::{out, read};
use crate::backend::Backend;
use crate::request::{self, ContextRequest, Which};

/// An opened backend. Any number of threads may use one at once.
#[allow(non_camel_case_types)]
pub struct snapmla_context {
    _opaque: (),
}

/// What a context handle guards.
pub struct Context {
    /// Shared with the context's caches, which may outlive it.
    pub backend: Arc<Backend>,
}

static CONTEXTS: AtomicPtr<Cell<Context>> = AtomicPtr::new(null_mut());

impl Guarded for Context {
    type Opaque = snapmla_context;
    const NAME: &'static str = "context";
    const MAGIC: u64 = u64::from_ne_bytes(*b"snapmlaX");

    fn cells() -> &'static AtomicPtr<Cell<Self>> {
        &CONTEXTS
    }
}

/// Whether a backend can be opened here: `SNAPMLA_STATUS_OK`, or `SNAPMLA_STATUS_UNAVAILABLE` with the reason as
/// message.
///
/// `SNAPMLA_BACKEND_CPU` and `SNAPMLA_BACKEND_AUTO` always can. `SNAPMLA_BACKEND_CUDA` is opened for a moment on
/// device `device_ordinal` (from 0; ignored otherwise), which may block for as long as `snapmla_context_create`.
///
/// Keeps nothing. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn snapmla_backend_available(backend: snapmla_backend, device_ordinal: i32) -> snapmla_status {
    guard(|| {
        let backend = Which::from_param(backend)?;
        Backend::available(backend, request::device_ordinal(backend, device_ordinal)?)
    })
}

/// Opens a backend.
///
/// `params`: read during the call only; must not be NULL. At most 4096 `cpu_threads`.
///
/// `out`: receives the handle, which is the caller's to pass to `snapmla_context_destroy`; must not be NULL. On
/// failure `*out` is NULL.
///
/// Blocks: loads the kernels or starts the threads. Allocates host memory, and on CUDA what the driver needs for a
/// module; the device's primary context is retained, and the calling thread's current context is left as it was.
/// With `SNAPMLA_BACKEND_AUTO` a CUDA backend that cannot be opened is no failure, the CPU takes its place;
/// `snapmla_context_describe` says which it was. Call it before any stream capture begins. Any thread.
///
/// A context is for the process that opened it. In a child made by fork(), where its threads are not, it may be destroyed
/// but not used: the CPU backend answers `SNAPMLA_STATUS_INVALID_HANDLE`, and CUDA serves no child at all. A child may
/// open CPU contexts of its own.
///
/// The CPU backend takes the best instruction set that the machine has, up to the one that the environment variable
/// `SNAPMLA_MAX_CPU_ISA` names: `portable`, `avx2`, `avx512` or `avx512_bf16`. Decode gives the same bits on machines
/// that use the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_context_create(
    params: *const snapmla_context_params,
    out: *mut *mut snapmla_context,
) -> snapmla_status {
    guard(|| {
        out::check("out", out)?;
        // SAFETY: not NULL, and a writable pointer by the header.
        unsafe { out.write_unaligned(null_mut()) };
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        let backend = Backend::open(&ContextRequest::from_params(&params)?)?;
        let context = handle::open(Context { backend: Arc::new(backend) });
        // SAFETY: as above.
        unsafe { out.write_unaligned(context) };
        Ok(())
    })
}

/// Destroys a context. NULL is fine and does nothing.
///
/// Its caches stay valid as handles, to be destroyed before or after, but a call needs both. Calls inside it on
/// other threads finish undisturbed. Work that it has launched must have finished on its streams: kernels may be
/// unloaded. A destroyed context that is used or destroyed again gives `SNAPMLA_STATUS_INVALID_HANDLE`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_context_destroy(context: *mut snapmla_context) -> snapmla_status {
    // SAFETY: the header asks for NULL or a handle of `snapmla_context_create`.
    guard(|| unsafe { handle::close::<Context>(context) })
}

/// Says which backend a context has, on what.
///
/// `info`: the caller's, with `struct_size` set; must not be NULL. Everything else in it is written, but nothing
/// past `struct_size`; fields that this library is too old to know stay as they were. Untouched on failure.
///
/// Never blocks, allocates or synchronises. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_context_describe(
    context: *const snapmla_context,
    info: *mut snapmla_context_info,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        let description = describe(&context.backend);
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        unsafe { read::write("info", info, &description) }
    })
}

fn describe(backend: &Backend) -> snapmla_context_info {
    let (kind, device_ordinal, parallelism, text) = match backend {
        Backend::Cpu(cpu) => (SNAPMLA_BACKEND_CPU, -1, cpu.threads() as u32, cpu.instruction_set()),
        Backend::Cuda(cuda) => (SNAPMLA_BACKEND_CUDA, cuda.ordinal(), cuda.num_sms(), cuda.device_name()),
    };
    let mut name = [0; 128];
    let last = name.len() - 1; // stays NUL
    for (to, from) in name[..last].iter_mut().zip(text.bytes()) {
        *to = from as std::os::raw::c_char;
    }
    snapmla_context_info {
        struct_size: size_of::<snapmla_context_info>() as u32,
        backend: kind,
        device_ordinal,
        parallelism,
        name,
    }
}
