//! Upper bounds of the decode calls that share a workspace.

use super::checks;
use crate::abi::types::{SNAPMLA_DECODE_BATCH_INVARIANT, snapmla_decode_limits};
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    pub max_batch: u32,
    pub max_q_len: u32,
    pub max_heads: u32,
    pub max_seq_len: u32,
    /// Some calls are batch-invariant.
    pub batch_invariant: bool,
}

impl DecodeLimits {
    pub fn from_params(params: &snapmla_decode_limits) -> Result<Self> {
        checks::flags("flags", params.flags, SNAPMLA_DECODE_BATCH_INVARIANT)?;
        checks::at_least_one("max_batch", params.max_batch)?;
        checks::at_least_one("max_q_len", params.max_q_len)?;
        checks::tokens(("max_batch", params.max_batch), ("max_q_len", params.max_q_len))?;
        Ok(Self {
            max_batch: params.max_batch,
            max_q_len: params.max_q_len,
            max_heads: checks::heads("max_heads", params.max_heads)?,
            max_seq_len: checks::at_least_one("max_seq_len", params.max_seq_len)?.min(checks::MAX_TOKENS),
            batch_invariant: params.flags & SNAPMLA_DECODE_BATCH_INVARIANT != 0,
        })
    }
}
