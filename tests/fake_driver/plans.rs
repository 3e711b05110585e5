//! Which block takes which tiles: the decode kernels' planner, run on the host with what a launch passes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use snapmla::cuda::Cuda;
use snapmla::request::DecodeRequest;

use crate::data::Random;
use crate::decode::{request, run};
use crate::emulation::with_emulated_kernels;
use crate::harness::{BlockPlan, Fake, Launch, Segment, cuda};

const TILE: u32 = 64;
/// As in `cuda/decode/fixed_splits.cuh`.
const FIXED_SPLIT_TILES: u32 = 16;
const MAX_FIXED_SPLITS: u32 = 32;

/// A batch to plan.
struct Batch {
    lengths: Vec<i32>,
    /// Empty for a uniform batch.
    cu_q_lens: Vec<i32>,
    q_len: u32,
    heads: u32,
    max_seq_len: u32,
}

impl Batch {
    fn uniform(lengths: Vec<i32>, q_len: u32, heads: u32) -> Self {
        Self { lengths, cu_q_lens: Vec::new(), q_len, heads, max_seq_len: 1 << 20 }
    }

    fn length(&self, sequence: usize) -> u32 {
        (self.lengths[sequence].max(0) as u32).min(self.max_seq_len)
    }

    fn rows(&self, sequence: usize) -> u32 {
        let queries = match self.cu_q_lens.is_empty() {
            true => self.q_len,
            false => (self.cu_q_lens[sequence + 1] - self.cu_q_lens[sequence]) as u32,
        };
        queries * self.heads
    }

    /// Tiles that row group `group` of `rows` rows has to go through.
    fn tiles(&self, sequence: usize, group: u32, rows: u32) -> u32 {
        if self.rows(sequence) > group * rows { self.length(sequence).div_ceil(TILE) } else { 0 }
    }

    fn request(&self, batch_invariant: bool) -> DecodeRequest {
        let request = request(self.lengths.len() as u32, self.q_len, self.heads, self.max_seq_len);
        let cu_q_lens = if self.cu_q_lens.is_empty() { ptr::null() } else { self.cu_q_lens.as_ptr() };
        DecodeRequest { seq_lens: self.lengths.as_ptr(), cu_q_lens, batch_invariant, ..request }
    }
}

/// All blocks' plans of one launch.
struct Plans {
    rows: u32,
    row_groups: u32,
    blocks: Vec<BlockPlan>,
    /// Partial results that the workspace has room for.
    partials: u64,
}

fn plans(fake: &Fake, cuda: &Cuda, batch: &Batch, batch_invariant: bool) -> Plans {
    let launch: &Launch = run(fake, cuda, &batch.request(batch_invariant));
    let rows = launch.kernel().rsplit('_').next().unwrap().parse().unwrap();
    let partial_out_bytes = launch.arg64(216) - launch.arg64(208);
    Plans {
        rows,
        row_groups: launch.arg32(248),
        blocks: (0..launch.grid[0]).map(|block| fake.plan(launch, block)).collect(),
        partials: partial_out_bytes / (2048 * u64::from(rows)),
    }
}

impl Plans {
    /// The segments of each sequence for one row group, in order, with the worker that has them.
    fn by_sequence(&self, group: u32) -> BTreeMap<u32, Vec<(usize, Segment)>> {
        let mut sequences: BTreeMap<u32, Vec<(usize, Segment)>> = BTreeMap::new();
        for (block, plan) in self.blocks.iter().enumerate() {
            if block as u32 % self.row_groups == group {
                for segment in &plan.segments {
                    sequences.entry(segment.sequence).or_default().push((block / self.row_groups as usize, *segment));
                }
            }
        }
        for segments in sequences.values_mut() {
            segments.sort_by_key(|(_, segment)| segment.first_tile);
        }
        sequences
    }

    /// Every tile has one worker, and every split that is not all of its sequence a partial result of its own.
    fn check(&self, batch: &Batch) {
        let mut slots = BTreeSet::new();
        for group in 0..self.row_groups {
            let sequences = self.by_sequence(group);
            for sequence in 0..batch.lengths.len() {
                let tiles = batch.tiles(sequence, group, self.rows);
                let segments = sequences.get(&(sequence as u32)).map_or(&[][..], Vec::as_slice);
                let mut next = 0;
                for (index, (worker, segment)) in segments.iter().enumerate() {
                    assert_eq!(segment.first_tile, next, "sequence {sequence}: {segments:?}");
                    assert_eq!(segment.length, batch.length(sequence));
                    assert_eq!(segment.q_first as i32, batch.cu_q_lens.get(sequence).copied().unwrap_or(0));
                    assert_eq!(
                        (segment.split, segment.splits),
                        (index as u32, segments.len() as u32),
                        "{segments:?}"
                    );
                    next += segment.tiles;
                    if segments.len() > 1 {
                        let partial = u64::from(segment.slot) * u64::from(self.row_groups) + u64::from(group);
                        assert!(partial < self.partials, "partial {partial} of {}: {segments:?}", self.partials);
                        assert!(slots.insert(partial), "partial {partial} is there twice: {segments:?}");
                        let block = &self.blocks[worker * self.row_groups as usize + group as usize];
                        assert!(block.shared_sequences, "sequence {sequence} is shared, but nobody waits");
                    }
                }
                assert_eq!(next, tiles, "sequence {sequence}: {segments:?}");
            }
        }
    }

    /// A block merges with every split that it had, and no more than two sequences' when nothing lists them.
    fn check_merges(&self, batch_invariant: bool) {
        for block in &self.blocks {
            let shared: Vec<_> = block.segments.iter().filter(|segment| segment.splits > 1).collect();
            if !batch_invariant {
                assert!(shared.len() <= 2 && block.merges.is_empty(), "{shared:?}");
                continue;
            }
            assert_eq!(shared.len(), block.merges.len());
            for (segment, merge) in shared.iter().zip(&block.merges) {
                assert_eq!((segment.sequence, segment.split as u16), (merge.sequence, merge.split));
                assert_eq!((segment.slot - segment.split, segment.splits as u16), (merge.first_slot, merge.splits));
            }
        }
    }

    /// Splits go by their sequence's length alone.
    fn check_fixed_splits(&self, batch: &Batch) {
        for group in 0..self.row_groups {
            for (sequence, segments) in self.by_sequence(group) {
                let tiles = batch.length(sequence as usize).div_ceil(TILE);
                let each = FIXED_SPLIT_TILES.max(tiles.div_ceil(MAX_FIXED_SPLITS));
                let expected: Vec<_> =
                    (0..tiles.div_ceil(each)).map(|i| (i * each, each.min(tiles - i * each))).collect();
                let found: Vec<_> = segments.iter().map(|(_, segment)| (segment.first_tile, segment.tiles)).collect();
                assert_eq!(found, expected, "sequence {sequence} of {}, {tiles} tiles", batch.lengths.len());
            }
        }
    }
}

/// Batches with an edge each.
fn batches() -> Vec<Batch> {
    let mut random = Random(7);
    let mut batches = Vec::new();
    for length in [0, 1, 64, 65, 1024, 1025, 2048, 8_192, 32_768, 32_769, 131_072, 1_000_000] {
        batches.push(Batch::uniform(vec![length], 1, 16));
    }
    for (index, size) in [2, 33, 128, 129, 133, 300, 700].into_iter().enumerate() {
        batches.push(Batch::uniform(vec![8_192; size], 1, 16));
        batches.push(Batch::uniform(vec![64; size], 1, 128));
        // Long ones among short ones, and some with nothing.
        let mut uneven = |q_len, heads| {
            let length = |random: &mut Random| match random.below(8) {
                0 => -(random.below(2) as i32),
                1 => random.below(100_000) as i32,
                _ => random.below(3_000) as i32,
            };
            let lengths = (0..size).map(|_| length(&mut random)).collect();
            let q_lens: Vec<u32> = (0..size).map(|_| random.below(u64::from(q_len) + 1) as u32).collect();
            let mut cu_q_lens = vec![3];
            cu_q_lens.extend(q_lens.iter().scan(3, |sum, &q| {
                *sum += q as i32;
                Some(*sum)
            }));
            (Batch::uniform(lengths, q_len, heads), cu_q_lens)
        };
        let (q_len, heads) = [(1, 8), (2, 16), (1, 128), (3, 128)][index % 4];
        let (batch, cu_q_lens) = uneven(q_len, heads);
        batches.push(Batch { cu_q_lens, lengths: batch.lengths.clone(), ..batch });
        batches.push(batch);
    }
    // A call's own bound cuts.
    batches.push(Batch { max_seq_len: 5_000, ..Batch::uniform(vec![4_000, 1 << 30, 0, 6_000], 1, 16) });
    batches
}

with_emulated_kernels! {
    fn every_tile_has_one_worker_and_every_split_its_place(fake) {
        fake.set_args_size(296);
        let cuda = cuda();
        for batch in batches() {
            for batch_invariant in [false, true] {
                let plans = plans(fake, &cuda, &batch, batch_invariant);
                plans.check(&batch);
                plans.check_merges(batch_invariant);
                if batch_invariant {
                    plans.check_fixed_splits(&batch);
                }
            }
        }
    }
}
