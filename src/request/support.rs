//! Whether a decode of some shape can be served, told without launching anything.

use super::{cache, checks, decode};
use crate::abi::types::*;
use crate::error::{Error, Result};
use crate::layout::{CONTENT_DIM, ROPE_DIM};

/// OK, or the reason as `SNAPMLA_STATUS_UNSUPPORTED`. What a backend serves less of is for it to say.
pub fn check(query: &snapmla_support_query) -> Result<()> {
    let answer = || {
        dim("content_dim", query.content_dim, CONTENT_DIM)?;
        dim("rope_dim", query.rope_dim, ROPE_DIM)?;
        checks::flags("decode_flags", query.decode_flags, decode::FLAGS)?;
        cache::page_size("page_size", query.page_size)?;
        checks::heads("num_heads", query.num_heads)?;
        checks::at_least_one("q_len", query.q_len)?;
        checks::flags("over_slots", query.over_slots, 1)?;
        if query.in_dtype != SNAPMLA_DTYPE_QUANTISED {
            checks::dtype("in_dtype", query.in_dtype)?;
        }
        checks::dtype("out_dtype", query.out_dtype)
    };
    answer().map(|_| ()).map_err(|error| Error::unsupported(error.message))
}

fn dim(name: &str, value: u32, served: usize) -> Result<()> {
    if value as usize != served {
        return Err(Error::unsupported(format!("{name} is {value}, only {served} is served")));
    }
    Ok(())
}
