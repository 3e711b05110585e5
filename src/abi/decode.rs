//! Decode, and the size of its workspace.

use super::cache::{self, snapmla_cache};
use super::context::{Context, snapmla_context};
use super::guard::guard;
use super::types::*;
use super::{handle, out, read, snapmla_stream};
use crate::request::{DecodeLimits, DecodeRequest};

/// Bytes of workspace that serve every decode call within these limits, on this context. A pure function of the
/// two; it may be 0.
///
/// `limits`: read during the call only; must not be NULL; every limit at least 1. `size`: receives bytes; must not
/// be NULL; untouched on failure.
///
/// Never blocks, allocates (but for a failure's message), launches or synchronises. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_decode_workspace_size(
    context: *const snapmla_context,
    limits: *const snapmla_decode_limits,
    size: *mut u64,
) -> snapmla_status {
    guard(|| {
        out::check("size", size)?;
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let limits = DecodeLimits::from_params(&unsafe { read::read("limits", limits) }?)?;
        // SAFETY: not NULL, and a writable pointer by the header.
        unsafe { size.write_unaligned(context.backend.decode_workspace_size(&limits)) };
        Ok(())
    })
}

/// FP8 attention of new queries over cached tokens: output in the latent space, and log-sum-exp.
///
/// `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
/// backend and device memory on CUDA, and must stay as they are until the stream has passed this call. With T the
/// sum of the query lengths (`batch * q_len`, or `cu_q_lens[batch]` when ragged) they are: in, `q_content`
/// [T][num_heads][512] and `q_rope` [T][num_heads][64] of `q_dtype`, `q_scale` [T][num_heads] F32, `cu_q_lens`
/// [batch + 1], `seq_lens` [batch] and `block_table` [batch][max_pages] int32 or `slots` [batch][max_slots] int64;
/// out, `out` [T][num_heads][512] of `out_dtype` and `lse` [T][num_heads] F32.
///
/// May be NULL: `lse`; `cu_q_lens`, when every sequence has `q_len`; `workspace`, when the size is 0; `block_table`
/// when `max_pages` is 0; all when `batch` is 0. `q_scale` must be NULL for raw queries and must not for quantised
/// ones. Quantised `q_content` and `q_rope` are 16-byte aligned, in all their strides as well.
///
/// Where a sequence's tokens lie is said by `block_table`, or record by record by `slots`; one of the two must be
/// NULL. Both give the same bits for the same tokens in the same order. CUDA has no decode over `slots` yet and
/// answers `SNAPMLA_STATUS_UNSUPPORTED`.
///
/// The queries of a sequence are its last tokens: append their keys first, and count them in `seq_lens`. Lengths
/// and page ids are read on the device when the launch runs, so that a captured graph may be replayed with others;
/// the shape of the launch depends on nothing but `params`. A page id or slot outside the cache (a negative slot too)
/// within a sequence's length is a mistake, which the CPU backend refuses with the entry's place.
///
/// Deterministic: the same call gives the same bits; with `SNAPMLA_DECODE_BATCH_INVARIANT` so does the same sequence in
/// any call. A NaN or infinity in a record or query spoils only the rows
/// that attend to it.
///
/// `workspace`: at least what `snapmla_decode_workspace_size` says for this call or for larger limits; its contents
/// need no initialisation and mean nothing afterwards.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread, but one workspace serves one call at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_decode(
    context: *mut snapmla_context,
    cache: *const snapmla_cache,
    params: *const snapmla_decode_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for handles of this library.
        let (context, cache) = unsafe { cache::enter(context, cache) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        let workspace_size = |limits: &DecodeLimits| context.backend.decode_workspace_size(limits);
        context.backend.decode(&DecodeRequest::from_params(&params, cache.view(), workspace_size)?, stream)
    })
}
