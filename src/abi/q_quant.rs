//! Q-quant.

use super::context::{Context, snapmla_context};
use super::guard::guard;
use super::types::*;
use super::{handle, read, snapmla_stream};
use crate::request::QQuantRequest;

/// Quantises absorbed queries, each (token, head) with its own scale, in one launch. The bytes are the same on
/// every backend. `snapmla_decode` takes raw queries as well and then does this itself; this call is for queries
/// that several decodes share.
///
/// `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
/// backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in,
/// `content` [num_tokens][num_heads][512] and `rope` [num_tokens][num_heads][64] of `dtype`; out, packed,
/// `q_content` [num_tokens][num_heads][512] E4M3 bytes, `q_rope` [num_tokens][num_heads][64] BF16 and `q_scale`
/// [num_tokens][num_heads] F32. None of them may be NULL unless `num_tokens` is 0.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_q_quant(
    context: *mut snapmla_context,
    params: *const snapmla_q_quant_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        context.backend.q_quant(&QQuantRequest::from_params(&params)?, stream)
    })
}
