//! Upper bounds of the decode calls that share a workspace.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    pub max_batch: u32,
    pub max_q_len: u32,
    pub max_heads: u32,
    pub max_seq_len: u32,
}
