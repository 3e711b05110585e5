//! Decode: attention of each row over its sequence, in tiles of 64 tokens and splits of 512.
//!
//! A tile is decoded to floats (or BF16) once and serves every row of its item ([`item`]). What a row comes to does not depend
//! on the threads, nor on what else is in the batch: splits lie at fixed tokens, a row's sums run in token order, and
//! the splits' partial results are merged in order ([`merge`]).

mod blocks;
mod item;
mod keys;
mod merge;
mod numbers;
mod plan;
mod scores;
mod scratch;
mod sequence;
mod softmax;
mod state;
mod tile;
mod values;

pub use plan::workspace_size;

use self::item::decode_item;
use self::keys::Keys;
use self::merge::merge_row;
use self::plan::{CHUNK_ROWS, Cursor, Wave};
use self::sequence::Sequence;
use self::state::Partials;
use super::isa::Isa;
use super::workers::{Shared, Workers};
use crate::error::Result;
use crate::request::DecodeRequest;

/// What every item of a call needs.
struct Call<'a> {
    request: &'a DecodeRequest,
    isa: Isa,
    keys: Keys,
    partials: Partials,
}

pub fn decode(workers: &Workers, isa: Isa, request: &DecodeRequest) -> Result<()> {
    let keys = Keys::new(request);
    for sequence in Sequence::all(request) {
        let sequence = sequence?;
        if sequence.q_len > 0 {
            keys.check(&request.cache, sequence.index, sequence.len)?;
        }
    }
    if request.batch == 0 {
        return Ok(());
    }
    let bytes = workspace_size(&request.limits()) as usize;
    let partials = Partials::new(request.workspace, bytes, plan::chunk_rows(request, workers.threads()));
    // SAFETY: an item writes its own rows' outputs or its own slot, a merge its own rows' outputs and carry; the
    // cache, the queries and (while merging) the slots are only read.
    let call = unsafe { Shared::new(Call { request, isa, keys, partials }) };
    let mut cursor = Cursor::default();
    Wave::with(|wave| {
        while wave.fill(request, &partials, &mut cursor) {
            workers.for_ranges(wave.items.len(), 1, |range| {
                wave.items[range].iter().for_each(|item| decode_item(call.get(), item));
            });
            workers.for_ranges(wave.groups.len() * CHUNK_ROWS, MERGE_GRAIN, |range| {
                for i in range {
                    let (group, row) = (&wave.groups[i / CHUNK_ROWS], i % CHUNK_ROWS);
                    if row < group.rows {
                        merge_row(call.get(), group, row);
                    }
                }
            });
        }
    });
    Ok(())
}

/// Rows that one thread merges at a time.
const MERGE_GRAIN: usize = 8;
