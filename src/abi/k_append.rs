//! K-append.

use super::cache::{self, snapmla_cache};
use super::context::snapmla_context;
use super::guard::guard;
use super::types::*;
use super::{read, snapmla_stream};
use crate::request::KAppendRequest;

/// Quantises new tokens and writes their records into the cache, in one launch. The bytes are the same on every
/// backend.
///
/// `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
/// backend and device memory on CUDA, and must stay as they are until the stream has passed this call: `content`
/// [num_tokens][512] and `rope` [num_tokens][64] of `dtype`, `slots` [num_tokens] int64. None of them may be NULL
/// unless `num_tokens` is 0. A token whose slot is negative is skipped. A slot past the layer's `num_pages *
/// page_size` is a mistake: the CPU backend refuses the call and says which it is; CUDA, which cannot report from a
/// launch, skips the token. No slot may occur twice in one call: which token it gets is not defined.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_k_append(
    context: *mut snapmla_context,
    cache: *mut snapmla_cache,
    params: *const snapmla_k_append_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for handles of this library.
        let (context, cache) = unsafe { cache::enter(context, cache) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        context.backend.k_append(&KAppendRequest::from_params(&params, cache.view())?, stream)
    })
}
