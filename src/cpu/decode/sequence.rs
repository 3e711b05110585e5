//! The sequences of a call.

use crate::cpu::address::Pointer;
use crate::cpu::table::prefix_sum;
use crate::error::{Error, Result};
use crate::request::{BatchRows, DecodeRequest};

/// One sequence: its query tokens and how much of it is cached.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    pub index: usize,
    /// What its query tokens are counted from in the callers' tensors: sequence in a uniform batch, token in a ragged.
    batch: i64,
    first_token: i64,
    pub q_len: usize,
    /// Cached tokens, cut at the call's bound.
    pub len: usize,
}

impl Sequence {
    /// Every sequence, with the rules of ragged batches checked.
    pub fn all(request: &DecodeRequest) -> impl Iterator<Item = Result<Self>> {
        (0..request.batch as usize).map(|index| Self::checked(request, index))
    }

    fn checked(request: &DecodeRequest, index: usize) -> Result<Self> {
        if !request.cu_q_lens.is_null() {
            let (from, to) = (prefix_sum(request.cu_q_lens, index), prefix_sum(request.cu_q_lens, index + 1));
            if from < 0 || to < from {
                return Err(Error::invalid(format!(
                    "cu_q_lens[{index}] is {from} and the next {to}: they must start at 0 or more and never decrease"
                )));
            }
            if (to - from) as u32 > request.q_len {
                return Err(Error::invalid(format!(
                    "sequence {index} has {} query tokens by cu_q_lens, more than q_len {}",
                    to - from,
                    request.q_len
                )));
            }
        }
        Ok(Self::new(request, index))
    }

    /// A sequence of a call that has been checked.
    pub fn new(request: &DecodeRequest, index: usize) -> Self {
        // SAFETY: the caller's array has an entry for every sequence.
        let len = unsafe { request.seq_lens.add(index).read_unaligned() };
        let len = (len.max(0) as usize).min(request.max_seq_len as usize);
        if request.cu_q_lens.is_null() {
            return Self { index, batch: index as i64, first_token: 0, q_len: request.q_len as usize, len };
        }
        let (from, to) = (prefix_sum(request.cu_q_lens, index), prefix_sum(request.cu_q_lens, index + 1));
        Self { index, batch: 0, first_token: from.into(), q_len: (to - from) as usize, len }
    }

    /// Where row `row` (query token by query token, heads within) of a tensor lies.
    pub fn at<P: Pointer>(&self, rows: &BatchRows<P>, num_heads: usize, row: usize) -> P {
        let (token, head) = (self.first_token + (row / num_heads) as i64, (row % num_heads) as i64);
        rows.ptr.byte_offset(self.batch * rows.batch_stride + token * rows.token_stride + head * rows.head_stride)
    }

    /// How many tokens row `row` attends to. Never less than an earlier row's.
    pub fn attended(&self, request: &DecodeRequest, row: usize) -> usize {
        if !request.causal {
            return self.len;
        }
        let query = row / request.num_heads as usize;
        (self.len + query + 1).saturating_sub(self.q_len)
    }
}
