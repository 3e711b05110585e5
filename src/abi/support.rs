//! The support query.

use super::context::{Context, snapmla_context};
use super::guard::guard;
use super::types::*;
use super::{handle, read};
use crate::request::support;

/// Whether a decode of this shape can be served: `SNAPMLA_STATUS_OK`, or `SNAPMLA_STATUS_UNSUPPORTED` with the
/// reason as message. For an engine that chooses between attention backends while it starts.
///
/// `query`: read during the call only; must not be NULL.
///
/// Never blocks, allocates (but for the message), launches or synchronises. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn snapmla_supports(
    context: *const snapmla_context,
    query: *const snapmla_support_query,
) -> snapmla_status {
    guard(|| {
        // SAFETY: the header asks for a handle of `snapmla_context_create`.
        let context = unsafe { handle::enter::<Context>(context) }?;
        // SAFETY: the header asks for a struct that is as large as its struct_size says.
        let query = unsafe { read::read("query", query) }?;
        support::check(&query)?;
        context.backend.check_slots(query.over_slots != 0)?;
        context.backend.check_rows(query.q_len, query.num_heads)
    })
}
