//! Records copy.

use super::cache::{self, snapmla_cache};
use super::context::snapmla_context;
use super::guard::guard;
use super::types::*;
use super::{read, snapmla_stream};
use crate::request::RecordsCopyRequest;

/// Copies records from slot to slot of one cache, in one layer or all, in one launch: for copy on write of a partly
/// filled page, beam search and defragmentation. Whole pages need no call: each is one plain block of bytes.
///
/// `params`: read during the call only; must not be NULL. `src_slots` and `dst_slots`, [num_records] int64, are the
/// caller's, host memory on the CPU backend and device memory on CUDA, and must stay as they are until the stream
/// has passed this call. Neither may be NULL unless `num_records` is 0. A pair with a negative slot is skipped. A
/// slot past the layer's `num_pages * page_size` is a mistake: the CPU backend refuses the call and says which it
/// is; CUDA, which cannot report from a launch, skips the pair.
///
/// `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
///
/// Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
/// graph. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_records_copy(
    context: *mut snapmla_context,
    cache: *mut snapmla_cache,
    params: *const snapmla_records_copy_params,
    stream: snapmla_stream,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for handles of this library.
        let (context, cache) = unsafe { cache::enter(context, cache) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let params = unsafe { read::read("params", params) }?;
        context.backend.records_copy(&RecordsCopyRequest::from_params(&params, cache.view())?, stream)
    })
}
