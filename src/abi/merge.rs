//! Merge.

use super::context::{Context, snapmla_context};
use super::guard::guard;
use super::types::*;
use super::{handle, read, snapmla_stream};
use crate::request::MergeRequest;

/// Combines partial attention results of the same queries over disjoint tokens, in one launch: for caches spread
/// over devices or stages, or a prefix computed elsewhere.
///
/// `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
/// backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in, `parts`
/// [num_parts][num_tokens][num_heads][512] of `parts_dtype` and `parts_lse` [num_parts][num_tokens][num_heads] F32;
/// out, `out` [num_tokens][num_heads][512] of `out_dtype` and `lse` [num_tokens][num_heads] F32, disjoint from the
/// parts. A row of which no part attended to anything gets zeros and -inf. Only `lse` may be NULL, and all when
/// `num_tokens` is 0.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_merge(
    context: *mut snapmla_context,
    params: *const snapmla_merge_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        context.backend.merge(&MergeRequest::from_params(&params)?, stream)
    })
}
