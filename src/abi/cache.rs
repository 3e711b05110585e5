//! Caches: the caller's memory, seen as layers of pages of records.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use super::context::{Context, snapmla_context};
use super::guard::guard;
use super::handle::{self, Cell, Entered, Guarded};
use super::types::*;
use super::{out, read, snapmla_stream};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::request::{CacheGeometry, CacheView};

/// A paged latent cache in the caller's memory. Any number of threads may use one at once.
#[allow(non_camel_case_types)]
pub struct snapmla_cache {
    _opaque: (),
}

/// What a cache handle guards.
pub struct Cache {
    backend: Arc<Backend>,
    view: CacheView,
}

static CACHES: AtomicPtr<Cell<Cache>> = AtomicPtr::new(null_mut());

impl Guarded for Cache {
    type Opaque = snapmla_cache;
    const NAME: &'static str = "cache";
    const MAGIC: u64 = u64::from_ne_bytes(*b"snapmlaC");

    fn cells() -> &'static AtomicPtr<Cell<Self>> {
        &CACHES
    }
}

/// Enters a context and one of its caches.
///
/// # Safety
///
/// Both are NULL or handles, live or destroyed, of this library.
pub unsafe fn enter(
    context: *const snapmla_context,
    cache: *const snapmla_cache,
) -> Result<(Entered<Context>, Entered<Cache>)> {
    // SAFETY: the caller's promise.
    let (inside, pages) = unsafe { (handle::enter::<Context>(context)?, handle::enter::<Cache>(cache)?) };
    if !Arc::ptr_eq(&inside.backend, &pages.backend) {
        return Err(Error::invalid(format!("cache {cache:p} was made with another context than {context:p}")));
    }
    Ok((inside, pages))
}

impl Cache {
    pub fn view(&self) -> CacheView {
        self.view
    }
}

/// Bytes of memory that a cache of this geometry needs: from the first byte of its first page to the last byte of
/// its last one. `memory` and `memory_size` are not looked at. A pure function; packed, it is `num_layers *
/// num_pages * page_size * 644`.
///
/// `params`: read during the call only; must not be NULL. `size`: receives bytes; must not be NULL; untouched on
/// failure.
///
/// Never blocks, allocates (but for a failure's message), launches or synchronises. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_cache_size(params: *const snapmla_cache_params, size: *mut u64) -> snapmla_status {
    guard(|| {
        out::check("size", size)?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let geometry = CacheGeometry::from_params(&unsafe { read::read("params", params) }?)?;
        // SAFETY: not NULL, and a writable pointer by the header.
        unsafe { size.write_unaligned(geometry.size) };
        Ok(())
    })
}

/// Makes a cache of the caller's memory and zero-fills its pages (no byte between them) on `stream`, unless told
/// `SNAPMLA_CACHE_KEEP_CONTENTS`.
///
/// `params`: read during the call only; must not be NULL. The memory in it stays the caller's: it must outlive the
/// cache and is never freed by the library. It may be read and written by the caller at any time in stream order: a
/// page is one plain block of `644 * page_size` bytes that may be copied, swapped out or sent as it is.
///
/// `stream`: orders the zero-fill on CUDA, NULL being the default stream; must be NULL on the CPU backend.
///
/// `out`: receives the handle, which is the caller's to pass to `snapmla_cache_destroy`; must not be NULL. On
/// failure `*out` is NULL. The cache belongs to `context` and is refused in calls with another one.
///
/// Allocates a few bytes of host memory, never device memory. On CUDA it asks the driver about `memory` and does
/// not wait for the zero-fill; on the CPU backend the pages are filled when it returns. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_cache_init(
    context: *mut snapmla_context,
    params: *const snapmla_cache_params,
    stream: snapmla_stream,
    out: *mut *mut snapmla_cache,
) -> snapmla_status {
    guard(|| {
        out::check("out", out)?;
        // SAFETY: not NULL, and a writable pointer by the header.
        unsafe { out.write_unaligned(null_mut()) };
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        let view = CacheView::from_params(&params)?;
        context.backend.init_cache(&view, params.flags & SNAPMLA_CACHE_KEEP_CONTENTS == 0, stream)?;
        let cache = handle::open(Cache { backend: Arc::clone(&context.backend), view });
        // SAFETY: as above.
        unsafe { out.write_unaligned(cache) };
        Ok(())
    })
}

/// Destroys a cache, before or after its context. NULL is fine and does nothing.
///
/// The memory is not touched, so work in flight on streams is not disturbed, nor are calls inside it on other
/// threads. A destroyed cache that is used or destroyed again gives `SNAPMLA_STATUS_INVALID_HANDLE`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_cache_destroy(cache: *mut snapmla_cache) -> snapmla_status {
    // SAFETY: the header asks for NULL or a handle of `snapmla_cache_init`.
    guard(|| unsafe { handle::close::<Cache>(cache) })
}
