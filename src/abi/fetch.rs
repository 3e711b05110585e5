//! Fetch-dequant.

use super::cache::{self, snapmla_cache};
use super::context::snapmla_context;
use super::guard::guard;
use super::types::*;
use super::{read, snapmla_stream};
use crate::request::FetchRequest;

/// Reads cached tokens back at high precision, in one launch: for prefill of a further chunk, or a shared prefix.
/// The bytes are the same on every backend.
///
/// `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
/// backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in, `slots`
/// [num_tokens] int64, or `block_table` [batch][max_pages], `starts` [batch] and `cu_tokens` [batch + 1] int32;
/// out, `content` [num_tokens][512] and `rope` [num_tokens][64] of `dtype`.
///
/// May be NULL: one of `slots` and `block_table`, and one must be; `starts`, for 0; one of `content` and `rope`,
/// which is then skipped; all when `num_tokens` is 0.
///
/// A token outside the cache is a mistake: a slot past the layer's `num_pages * page_size`, a page that is none, a
/// token past `max_pages * page_size`. The CPU backend refuses the call and says which it is. CUDA, which cannot
/// report from a launch, leaves the row of such a slot unwritten and fills the row of such a page or token with NaN.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_fetch_dequant(
    context: *mut snapmla_context,
    cache: *const snapmla_cache,
    params: *const snapmla_fetch_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for handles of this library.
        let (context, cache) = unsafe { cache::enter(context, cache) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        context.backend.fetch_dequant(&FetchRequest::from_params(&params, cache.view())?, stream)
    })
}
