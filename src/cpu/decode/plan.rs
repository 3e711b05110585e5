//! How a call is cut into items, and how much workspace that takes.
//!
//! An item is a split of one sequence, for up to 64 of its rows. Items run in waves, as many as there are slots for
//! partial results; after each wave the splits of a row are merged, and a row whose splits go on in the next wave is
//! carried over. So the workspace stays small however long the sequences are.

use std::cell::Cell;

use super::sequence::Sequence;
use super::state::{Partials, slot_bytes};
use crate::layout::TILE_TOKENS;
use crate::request::{DecodeLimits, DecodeRequest};

/// Tokens of a split, a whole number of tiles.
pub const SPLIT_TOKENS: usize = 8 * TILE_TOKENS;
/// Most rows of an item: decoding a tile is then a few percent of the work on it.
pub const CHUNK_ROWS: usize = 64;
/// Fewest rows of an item, where threads would be idle otherwise: decoding a tile is then a fifth of the work on it.
const SMALL_CHUNK_ROWS: usize = 16;
/// Most slots, enough to keep a large machine's threads busy within a wave.
const MAX_SLOTS: u64 = 256;
/// Most items in a wave.
const MAX_ITEMS: usize = 4096;

/// Bytes of workspace for every call within the limits: none when no sequence can have two splits.
pub fn workspace_size(limits: &DecodeLimits) -> u64 {
    let rows = u64::from(limits.max_heads) * u64::from(limits.max_q_len);
    let splits = u64::from(limits.max_seq_len).div_ceil(SPLIT_TOKENS as u64);
    if splits <= 1 {
        return 0;
    }
    let items = u64::from(limits.max_batch).saturating_mul(rows.div_ceil(CHUNK_ROWS as u64)).saturating_mul(splits);
    // The carried rows of a wave are read while the next carry is written.
    (items.min(MAX_SLOTS) + 2) * slot_bytes(rows.min(CHUNK_ROWS as u64) as usize) as u64
}

/// Rows of an item in this call. A row's result does not depend on it.
pub fn chunk_rows(request: &DecodeRequest, threads: usize) -> usize {
    let mut chunk_rows = CHUNK_ROWS;
    while chunk_rows > SMALL_CHUNK_ROWS && !enough_items(request, chunk_rows, threads) {
        chunk_rows /= 2;
    }
    chunk_rows.min(request.num_heads as usize * request.q_len.max(1) as usize)
}

/// Whether there are two items for every thread, if there is more than one.
fn enough_items(request: &DecodeRequest, chunk_rows: usize, threads: usize) -> bool {
    let mut missing = if threads > 1 { 2 * threads } else { 0 };
    for index in 0..request.batch as usize {
        if missing == 0 {
            break;
        }
        let sequence = Sequence::new(request, index);
        let rows = sequence.q_len * request.num_heads as usize;
        let items = rows.div_ceil(chunk_rows) * sequence.len.div_ceil(SPLIT_TOKENS);
        missing = missing.saturating_sub(items);
    }
    missing == 0
}

/// A split of one sequence for some of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub sequence: usize,
    pub first_row: usize,
    pub rows: usize,
    pub first_token: usize,
    /// Where its partial result goes; none when it is the whole result.
    pub slot: Option<usize>,
}

/// The splits of some rows that are in one wave.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub sequence: usize,
    pub first_row: usize,
    pub rows: usize,
    pub first_slot: usize,
    pub slots: usize,
    /// Earlier splits were merged in the wave before: which carry holds them.
    pub carry_in: Option<usize>,
    /// Later splits follow in the next wave: which carry takes what there is.
    pub carry_out: Option<usize>,
}

/// The next item of a call.
#[derive(Debug, Default)]
pub struct Cursor {
    sequence: usize,
    first_row: usize,
    first_token: usize,
    waves: usize,
}

/// The items that run between two merges.
#[derive(Debug, Default)]
pub struct Wave {
    pub items: Vec<Item>,
    pub groups: Vec<Group>,
}

impl Wave {
    /// Lends this thread's wave, so that its memory is kept from call to call.
    pub fn with<T>(work: impl FnOnce(&mut Wave) -> T) -> T {
        thread_local!(static WAVE: Cell<Wave> = Cell::default());
        // A thread that waits for its wave may run another call meanwhile: that one finds the cell empty.
        let mut wave = WAVE.try_with(Cell::take).unwrap_or_default();
        let result = work(&mut wave);
        // Without thread-local storage (the thread is being torn down) the memory is just freed.
        _ = WAVE.try_with(|cell| cell.set(wave));
        result
    }

    /// Takes the items from the cursor on; false when there are none left.
    pub fn fill(&mut self, request: &DecodeRequest, partials: &Partials, cursor: &mut Cursor) -> bool {
        let slots = partials.slots();
        self.items.clear();
        self.groups.clear();
        let mut used = 0;
        let (carry_in, carry_out) = (cursor.waves % 2, (cursor.waves + 1) % 2);
        cursor.waves += 1;
        while cursor.sequence < request.batch as usize {
            let sequence = Sequence::new(request, cursor.sequence);
            let rows = sequence.q_len * request.num_heads as usize;
            while cursor.first_row < rows {
                let chunk = partials.rows().min(rows - cursor.first_row);
                let item = Item {
                    sequence: cursor.sequence,
                    first_row: cursor.first_row,
                    rows: chunk,
                    first_token: cursor.first_token,
                    slot: None,
                };
                let whole = sequence.len <= SPLIT_TOKENS;
                if self.items.len() == MAX_ITEMS || !whole && used == slots {
                    return true;
                }
                if whole {
                    self.items.push(item);
                } else {
                    let end = sequence.len.next_multiple_of(SPLIT_TOKENS);
                    let splits = ((end - cursor.first_token) / SPLIT_TOKENS)
                        .min(slots - used)
                        .min(MAX_ITEMS - self.items.len());
                    let next_token = cursor.first_token + splits * SPLIT_TOKENS;
                    self.groups.push(Group {
                        sequence: cursor.sequence,
                        first_row: cursor.first_row,
                        rows: chunk,
                        first_slot: used,
                        slots: splits,
                        carry_in: (cursor.first_token > 0).then_some(carry_in),
                        carry_out: (next_token < end).then_some(carry_out),
                    });
                    self.items.extend((0..splits).map(|i| Item {
                        first_token: cursor.first_token + i * SPLIT_TOKENS,
                        slot: Some(used + i),
                        ..item
                    }));
                    used += splits;
                    cursor.first_token = next_token;
                    if next_token < end {
                        return true;
                    }
                    cursor.first_token = 0;
                }
                cursor.first_row += chunk;
            }
            cursor.first_row = 0;
            cursor.sequence += 1;
        }
        !self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds() -> impl Strategy<Value = DecodeLimits> {
        (0u32..3000, 0u32..40, 1u32..129, 1u32..3_000_000).prop_map(
            |(max_batch, max_q_len, max_heads, max_seq_len)| DecodeLimits {
                max_batch,
                max_q_len,
                max_heads,
                max_seq_len,
                batch_invariant: false,
            },
        )
    }

    proptest! {
        #[test]
        fn a_call_never_needs_more_than_a_larger_one(a in bounds(), b in bounds()) {
            let larger = DecodeLimits {
                max_batch: a.max_batch.max(b.max_batch),
                max_q_len: a.max_q_len.max(b.max_q_len),
                max_heads: a.max_heads.max(b.max_heads),
                max_seq_len: a.max_seq_len.max(b.max_seq_len),
                batch_invariant: false,
            };
            prop_assert!(workspace_size(&a) <= workspace_size(&larger));
            prop_assert_eq!(workspace_size(&a) % 256, 0);
        }
    }

    #[test]
    fn the_workspace_is_bounded_at_any_limits() {
        let limits = DecodeLimits {
            max_batch: u32::MAX,
            max_q_len: u32::MAX,
            max_heads: 128,
            max_seq_len: u32::MAX,
            batch_invariant: false,
        };
        assert!(workspace_size(&limits) < 64 << 20);
    }
}
