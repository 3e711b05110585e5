//! The shape of a CUDA decode launch, from the host's limits alone: rows of a block, blocks, workspace.
//!
//! A block takes some rows of a sequence, one row group; `workers` blocks share each row group's work, and all blocks
//! of the grid are resident at once, one a multiprocessor. Which worker takes which tokens is for the device to say.

use crate::error::{Error, Result};
use crate::layout::{CONTENT_DIM, TILE_TOKENS};
use crate::request::DecodeLimits;

/// Rows of a block: the kernels there are. A block brings a tile in for its rows alone, so more rows mean fewer reads;
/// fewer rows mean more row groups to share the tiles, shorter merges, and less padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum BlockRows {
    Rows16 = 16,
    Rows32 = 32,
    Rows64 = 64,
}

use BlockRows::{Rows16, Rows32, Rows64};

/// From so many tiles of 64 rows a multiprocessor on, the work itself outweighs its start and the merge of splits:
/// then the blocks that read the least are the best.
const TILES_FOR_64_ROWS: u64 = 4;
/// From this many halves of such a tile on, a block of 32 rows has work enough; below, splitting rows keeps more
/// multiprocessors busy than splitting tokens would, and the merge is shorter.
const HALF_TILES_FOR_32_ROWS: u64 = 3;

/// Tiles of a split that is cut by its sequence's length alone, until there are this many of them: then they grow with
/// it. As in `cuda/decode/fixed_splits.cuh`.
const FIXED_SPLIT_TILES: u64 = 16;
const MAX_FIXED_SPLITS: u64 = 32;

/// Splits of a workspace: a worker leaves at most one sequence unfinished at either end of its work.
const PARTIALS_A_WORKER: u64 = 2;
/// A row of a partial result: F32 output, its reference and its sum.
const PARTIAL_ROW_BYTES: u64 = PARTIAL_OUT_BYTES + 8;
const PARTIAL_OUT_BYTES: u64 = 4 * CONTENT_DIM as u64;

/// The launch of one decode call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub rows: BlockRows,
    /// Row groups of the longest query.
    pub row_groups: u32,
    /// Blocks a row group.
    pub workers: u32,
    pub splits: Splits,
}

/// How sequences are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splits {
    /// By the workers' fair share.
    Balanced,
    /// By each sequence's own length, for a batch-invariant call; so many partial results a row group at most.
    Fixed { partials: u64 },
}

impl Plan {
    /// The launch of a call that has exactly these limits.
    pub fn new(call: &DecodeLimits, num_sms: u32) -> Result<Self> {
        check_rows(call.max_q_len, call.max_heads, num_sms)?;
        let splits = if call.batch_invariant { Splits::fixed(call) } else { Splits::Balanced };
        let rows = match splits {
            Splits::Balanced => block_rows(call, num_sms),
            Splits::Fixed { .. } => smallest_block_rows(max_rows(call)),
        };
        let row_groups = rows.groups(max_rows(call)) as u32;
        Ok(Self { rows, row_groups, workers: num_sms / row_groups, splits })
    }

    /// Blocks, never more than multiprocessors.
    pub fn grid(&self) -> u32 {
        self.workers * self.row_groups
    }

    /// Tiles that a split is worth.
    pub fn min_split_tiles(&self) -> u32 {
        if self.rows == Rows16 { 2 } else { 4 }
    }

    /// Bytes of unfinished output in the workspace, which come first: references and sums follow.
    pub fn partial_out_bytes(&self) -> u64 {
        self.partial_rows() * PARTIAL_OUT_BYTES
    }

    fn partial_rows(&self) -> u64 {
        match self.splits {
            Splits::Balanced => balanced_partial_rows(self.rows, self.grid()),
            Splits::Fixed { partials } => partials * u64::from(self.row_groups) * self.rows.count(),
        }
    }

    /// Bytes of workspace that the call makes use of.
    pub fn workspace_size(&self) -> u64 {
        self.partial_rows() * PARTIAL_ROW_BYTES
    }
}

impl Splits {
    /// Room for the most splits that the batch can have; none where no sequence can have two.
    fn fixed(call: &DecodeLimits) -> Self {
        let splits = tiles(call).div_ceil(FIXED_SPLIT_TILES).min(MAX_FIXED_SPLITS);
        Self::Fixed { partials: if splits <= 1 { 0 } else { u64::from(call.max_batch) * splits } }
    }
}

impl BlockRows {
    fn count(self) -> u64 {
        self as u64
    }

    fn groups(self, rows: u64) -> u64 {
        rows.div_ceil(self.count())
    }
}

/// OK, or why a launch cannot take so many rows a sequence: one block of each row group must be resident.
pub fn check_rows(q_len: u32, num_heads: u32, num_sms: u32) -> Result<()> {
    let (rows, most) = (u64::from(q_len) * u64::from(num_heads), Rows64.count() * u64::from(num_sms));
    if rows > most {
        return Err(Error::unsupported(format!(
            "q_len {q_len} * num_heads {num_heads} = {rows} is more than {most}, the rows of a sequence that one launch \
             takes on {num_sms} multiprocessors"
        )));
    }
    Ok(())
}

/// Bytes of workspace for every call within the limits.
pub fn workspace_size(limits: &DecodeLimits, num_sms: u32) -> u64 {
    let rows = if max_rows(limits) > Rows16.count() {
        // A smaller call with 17 to 32 rows a sequence takes blocks of 32.
        block_rows(limits, num_sms).max(Rows32)
    } else {
        Rows16
    };
    let balanced = balanced_partial_rows(rows, num_sms);
    let rows = if limits.batch_invariant { balanced.max(fixed_partial_rows(limits, num_sms)) } else { balanced };
    rows.saturating_mul(PARTIAL_ROW_BYTES).saturating_add(0xff) & !0xff
}

fn balanced_partial_rows(rows: BlockRows, blocks: u32) -> u64 {
    PARTIALS_A_WORKER * u64::from(blocks) * rows.count()
}

fn fixed_partial_rows(limits: &DecodeLimits, num_sms: u32) -> u64 {
    let Splits::Fixed { partials } = Splits::fixed(limits) else { return 0 };
    // No call has more rows a sequence than a launch takes.
    let rows = max_rows(limits).min(Rows64.count() * u64::from(num_sms));
    let block = smallest_block_rows(rows);
    partials.saturating_mul(block.groups(rows) * block.count())
}

/// Rows of the longest query.
fn max_rows(call: &DecodeLimits) -> u64 {
    u64::from(call.max_q_len) * u64::from(call.max_heads)
}

/// Tiles of the longest sequence.
fn tiles(call: &DecodeLimits) -> u64 {
    u64::from(call.max_seq_len).div_ceil(TILE_TOKENS as u64)
}

/// The smallest blocks that hold all rows, or the largest.
fn smallest_block_rows(rows: u64) -> BlockRows {
    [Rows16, Rows32].into_iter().find(|block| rows <= block.count()).unwrap_or(Rows64)
}

/// For more than 32 rows it grows with each of the limits, which `workspace_size` counts on.
fn block_rows(call: &DecodeLimits, num_sms: u32) -> BlockRows {
    let (rows, num_sms) = (max_rows(call), u64::from(num_sms));
    let smallest = smallest_block_rows(rows);
    if smallest != Rows64 {
        return smallest;
    }
    let work = u64::from(call.max_batch).saturating_mul(tiles(call)).saturating_mul(Rows64.groups(rows));
    if work >= TILES_FOR_64_ROWS * num_sms || Rows16.groups(rows) > num_sms {
        Rows64
    } else if work.saturating_mul(2) >= HALF_TILES_FOR_32_ROWS * num_sms {
        Rows32
    } else {
        Rows16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::SNAPMLA_STATUS_UNSUPPORTED;
    use proptest::prelude::*;

    const H200: u32 = 132;

    fn call(max_batch: u32, max_q_len: u32, max_heads: u32, max_seq_len: u32) -> DecodeLimits {
        DecodeLimits { max_batch, max_q_len, max_heads, max_seq_len, batch_invariant: false }
    }

    fn balanced(rows: BlockRows, row_groups: u32, workers: u32) -> Plan {
        Plan { rows, row_groups, workers, splits: Splits::Balanced }
    }

    fn invariant(call: DecodeLimits) -> DecodeLimits {
        DecodeLimits { batch_invariant: true, ..call }
    }

    #[test]
    fn few_rows_take_the_smallest_kernel_that_holds_them() {
        for (q_len, heads, rows) in
            [(1, 1, Rows16), (1, 16, Rows16), (2, 8, Rows16), (1, 17, Rows32), (2, 16, Rows32)]
        {
            for (batch, length) in [(1, 1), (128, 131_072)] {
                let plan = Plan::new(&call(batch, q_len, heads, length), H200).unwrap();
                assert_eq!(plan, balanced(rows, 1, H200), "{q_len} x {heads}");
            }
        }
    }

    #[test]
    fn many_rows_go_by_the_work() {
        for (batch, heads, length, rows, row_groups, workers) in [
            (1, 64, 8_192, Rows16, 4, 33),
            (1, 128, 64, Rows16, 8, 16),
            (1, 64, 197 * 64, Rows16, 4, 33),
            (1, 64, 198 * 64, Rows32, 2, 66),
            (1, 64, 527 * 64, Rows32, 2, 66),
            (1, 64, 527 * 64 + 1, Rows64, 1, 132),
            (1, 128, 264 * 64, Rows64, 2, 66),
            (32, 128, 65_536, Rows64, 2, 66),
            (1, 33, 64, Rows16, 3, 44),
            (128, 40, 8_192, Rows64, 1, 132),
        ] {
            let plan = Plan::new(&call(batch, 1, heads, length), H200).unwrap();
            assert_eq!(plan, balanced(rows, row_groups, workers), "{batch} x {length}, {heads} heads");
        }
    }

    #[test]
    fn many_query_tokens_take_blocks_of_64_rows_for_as_long_as_they_fit() {
        let fits = Plan::new(&call(1, 17, 128, 64), H200).unwrap();
        assert_eq!(fits, balanced(Rows64, 34, 3));
        let most = Plan::new(&call(1, 66, 128, 64), H200).unwrap();
        assert_eq!(most, balanced(Rows64, 132, 1));
        let error = Plan::new(&call(1, 67, 128, 64), H200).unwrap_err();
        assert_eq!(error.status, SNAPMLA_STATUS_UNSUPPORTED);
        assert_eq!(
            error.message,
            "q_len 67 * num_heads 128 = 8576 is more than 8448, the rows of a sequence that one launch takes on 132 \
             multiprocessors"
        );
    }

    #[test]
    fn the_workspace_is_bounded_at_any_limits() {
        let largest = workspace_size(&call(u32::MAX, u32::MAX, 128, u32::MAX), H200);
        assert_eq!(largest, 2 * 132 * 64 * 2056);
        assert_eq!(workspace_size(&call(1, 1, 16, 1), H200), 2 * 132 * 16 * 2056);
    }

    #[test]
    fn batch_invariant_blocks_go_by_the_rows_alone() {
        for (q_len, heads, rows, row_groups) in
            [(1, 1, Rows16, 1), (1, 16, Rows16, 1), (2, 16, Rows32, 1), (1, 33, Rows64, 1), (2, 128, Rows64, 4)]
        {
            for (batch, length) in [(1, 1), (1, 131_072), (300, 64), (128, 131_072)] {
                let plan = Plan::new(&invariant(call(batch, q_len, heads, length)), H200).unwrap();
                assert_eq!((plan.rows, plan.row_groups, plan.workers), (rows, row_groups, H200 / row_groups));
            }
        }
    }

    #[test]
    fn the_workspace_of_fixed_splits_holds_every_split() {
        // A sequence of one split needs no partial result, but a call without the flag does.
        for (batch, length, splits) in
            [(1, 1024, 0), (1, 1025, 2), (3, 8_192, 24), (128, 32_768, 128 * 32), (128, 131_072, 128 * 32)]
        {
            let limits = invariant(call(batch, 1, 128, length));
            let plan = Plan::new(&limits, H200).unwrap();
            assert_eq!(plan.workspace_size(), splits * 128 * 2056, "{batch} x {length}");
            let balanced = workspace_size(&call(batch, 1, 128, length), H200);
            assert_eq!(workspace_size(&limits, H200), plan.workspace_size().max(balanced));
        }
        assert_eq!(workspace_size(&invariant(call(u32::MAX, u32::MAX, 128, u32::MAX)), H200) % 256, 0);
    }

    fn calls() -> impl Strategy<Value = DecodeLimits> {
        (1u32..300, 1u32..80, 1u32..129, 1u32..200_000)
            .prop_map(|(batch, q_len, heads, length)| {
                // Short and few as often as not: that is where the rule has its edges.
                call(
                    if batch > 150 { 1 } else { batch },
                    if q_len > 40 { 1 } else { q_len },
                    heads,
                    length >> (length % 16),
                )
            })
            .prop_flat_map(|c| any::<bool>().prop_map(move |flag| DecodeLimits { batch_invariant: flag, ..c }))
            .prop_map(|c| call(c.max_batch, c.max_q_len, c.max_heads, c.max_seq_len.max(1)))
    }

    fn sms() -> impl Strategy<Value = u32> {
        prop_oneof![Just(H200), 1u32..200]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_row_has_a_block_and_every_block_a_multiprocessor(c in calls(), num_sms in sms()) {
            if let Ok(plan) = Plan::new(&c, num_sms) {
                prop_assert!(plan.workers >= 1 && plan.grid() <= num_sms);
                prop_assert!(plan.grid() + plan.row_groups > num_sms, "blocks left out");
                let covered = u64::from(plan.row_groups) * plan.rows.count();
                prop_assert!((max_rows(&c)..max_rows(&c) + plan.rows.count()).contains(&covered));
            } else {
                prop_assert!(max_rows(&c) > 64 * u64::from(num_sms));
            }
        }

        #[test]
        fn the_workspace_of_limits_serves_every_call_within(c in calls(), other in calls(), num_sms in sms()) {
            let limits = DecodeLimits {
                max_batch: c.max_batch.max(other.max_batch),
                max_q_len: c.max_q_len.max(other.max_q_len),
                max_heads: c.max_heads.max(other.max_heads),
                max_seq_len: c.max_seq_len.max(other.max_seq_len),
                batch_invariant: c.batch_invariant || other.batch_invariant,
            };
            let size = workspace_size(&limits, num_sms);
            prop_assert!(workspace_size(&c, num_sms) <= size);
            prop_assert_eq!(size % 256, 0);
            if let Ok(plan) = Plan::new(&c, num_sms) {
                prop_assert!(plan.workspace_size() <= size);
                prop_assert_eq!(plan.partial_out_bytes() % 16, 0);
                prop_assert_eq!(plan.partial_out_bytes() / 2048 * 2056, plan.workspace_size());
            }
        }
    }
}
