// The plans that share a batch's tiles out evenly. A sequence's tiles stand on an axis, the workers cut the axis:
//   aligned: a sequence of T tiles is cut into ceil(T / chunk) equal splits, one worker each. Used when some chunk
//            near the average gives every worker at most one split.
//   linear:  every sequence takes its tiles plus SEGMENT_COST on the axis, and worker k takes [k, k + 1) * share of
//            it, in as many segments as that holds. Used for uneven or large batches.
#pragma once

#include "decode/batch.cuh"
#include "decode/partials.cuh"

namespace snapmla {

// Starting a segment costs about as much as this many tiles: queries to load, the score pipeline to fill.
constexpr u32 SEGMENT_COST = 4;
// What the linear plan must save, in tiles, to be worth its second segments and merges: 20 to 30 us.
constexpr u32 LINEAR_PENALTY = 20;
// Batches whose tiles the planning warp keeps in registers. Only they can have an aligned plan: a larger one has more
// sequences than there are workers, or mostly empty ones.
constexpr u32 SEQUENCES_A_LANE = 4;
constexpr u32 SMALL_BATCH = WARP * SEQUENCES_A_LANE;

// The tiles of a small batch: lane l has those of sequences l, l + 32…
using SmallBatch = u32[SEQUENCES_A_LANE];

__device__ __forceinline__ void load_small_batch(const DecodeArgs& args, u32 group_first_row, SmallBatch& tiles) {
    // All lengths in one trip to memory, so without a branch.
    u32 length[SEQUENCES_A_LANE];
#pragma unroll
    for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) length[i] = sequence_length(args, min(i * WARP + threadIdx.x % WARP, args.batch - 1));
#pragma unroll
    for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) {
        const u32 sequence = i * WARP + threadIdx.x % WARP;
        const bool there = sequence < args.batch && has_rows(args, sequence, group_first_row);
        tiles[i] = there ? tiles_of_length(length[i]) : 0;
    }
}

// 1 / chunk, a little less: a sequence of k chunks must not come out as k + 1 splits by rounding.
__device__ __forceinline__ float inverse_of_chunk(u32 chunk) { return __fdividef(1.f - 0x1p-20f, __uint2float_rn(chunk)); }

// Splits of a sequence for a chunk. Any number will do that everybody agrees on.
__device__ __forceinline__ u32 count_splits(u32 tiles, float inverse_chunk) {
    return __float2uint_ru(__uint2float_rn(tiles) * inverse_chunk);
}

__device__ __forceinline__ u32 total_splits(const SmallBatch& tiles, u32 chunk) {
    const float inverse = inverse_of_chunk(chunk);
    u32 splits = 0;
#pragma unroll
    for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) splits += count_splits(tiles[i], inverse);
    return __reduce_add_sync(~0u, splits);
}

// A chunk and the splits that it makes of the batch; none where even 1.5 times the average makes too many.
struct Chunk {
    u32 tiles;
    u32 splits;
};

// The smallest chunk that makes no more splits than there are workers.
__device__ __forceinline__ Chunk smallest_chunk(const DecodeArgs& args, const SmallBatch& tiles, u32 average) {
    u32 low = average, high = average, splits = total_splits(tiles, high);
    if (splits > args.workers) {
        high += high / 2;
        splits = total_splits(tiles, high);
        if (splits > args.workers) return {0, 0};
    }
#pragma unroll 1
    while (low < high) {
        const u32 middle = (low + high) / 2, fewer = total_splits(tiles, middle);
        if (fewer <= args.workers) {
            high = middle;
            splits = fewer;
        } else {
            low = middle + 1;
        }
    }
    return {high, splits};
}

// The aligned plan, where there is a good one: this worker's segment into shared memory. The planning warp.
template <class Shared>
__device__ __forceinline__ bool plan_aligned(const DecodeArgs& args, Shared& smem, const SmallBatch& tiles) {
    const u32 worker = block_worker(args);
    u32 sum = 0, sequences = 0;
#pragma unroll
    for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) {
        sum += tiles[i];
        sequences += __popc(__ballot_sync(~0u, tiles[i] != 0));
    }
    if (sequences > args.workers) return false;
    const u32 average = __float2uint_ru(__uint2float_rn(__reduce_add_sync(~0u, sum)) * args.workers_inverse);
    const Chunk chunk = smallest_chunk(args, tiles, max(average, args.min_split_tiles));
    if (chunk.tiles == 0 || chunk.tiles > average + LINEAR_PENALTY) return false;

    // The split of this worker: splits are numbered through the sequences.
    const float inverse = inverse_of_chunk(chunk.tiles);
    u32 before = 0, sequence = 0, sequence_tiles = 0, first = 0, splits = 0;
#pragma unroll
    for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) {
        if (i * WARP >= args.batch) break;
        const u32 weight = count_splits(tiles[i], inverse), after = before + warp_inclusive_sum(weight);
        if (after - weight <= worker && worker < after) {
            sequence = i * WARP + threadIdx.x % WARP;
            sequence_tiles = tiles[i];
            first = after - weight;
            splits = weight;
        }
        before = __shfl_sync(~0u, after, WARP - 1);
    }
    if (splits != 0) {
        const float each = __fdividef(__uint2float_rn(sequence_tiles), __uint2float_rn(splits));
        const u32 part = worker - first, begin = __float2uint_rn(__uint2float_rn(part) * each);
        const u32 end = part + 1 == splits ? sequence_tiles : __float2uint_rn(__uint2float_rn(part + 1) * each);
        smem.segments[0] = {sequence, begin, end - begin, sequence_length(args, sequence), query_span(args, sequence).first,
                            slot_of_first(first), u16(part), u16(splits)};
    }
    if (threadIdx.x % WARP == 0) {
        if (worker >= before) smem.segments[0].tiles = 0;
        smem.segments[1].tiles = 0;
        smem.shared_sequences = chunk.splits > sequences;
        smem.segments_made = 1;
        smem.next_sequence = args.batch;
    }
    return true;
}

// Axis positions that a sequence of `tiles` takes in the linear plan.
__device__ __forceinline__ u32 axis_weight(u32 tiles) { return tiles == 0 ? 0 : tiles + SEGMENT_COST; }

// Part of a sequence, which starts at `position` on the axis, that falls to this worker.
__device__ __forceinline__ Segment cut_segment(const DecodeArgs& args, u32 share, u32 sequence, u32 tiles, u32 position) {
    const u32 begin = block_worker(args) * share, end = begin + share;
    const u32 start = position + SEGMENT_COST;  // tile 0's place
    const u32 low = begin > start ? begin - start : 0, high = end > start ? min(end - start, tiles) : 0;
    const u32 first_worker = start / share, last_worker = (start + tiles - 1) / share;
    return {sequence, low, high > low ? high - low : 0, sequence_length(args, sequence), query_span(args, sequence).first,
            slot_of_first(first_worker), u16(block_worker(args) - first_worker), u16(last_worker - first_worker + 1)};
}

// Adds segments of the linear plan to the ring while it has room: one warp. Segments before `current` may be
// overwritten. The list ends with a segment of no tiles.
template <class Shared>
__device__ __forceinline__ void extend_linear(const DecodeArgs& args, Shared& smem, u32 current) {
    const u32 lane = lane_of(), share = smem.plan_share, begin = block_worker(args) * share, end = begin + share;
    const u32 group_first_row = block_row_group(args) * Shared::ROWS;
    u32 base = smem.next_sequence, position = smem.next_position, made = smem.segments_made;
    __syncwarp();
#pragma unroll 1
    while (base < args.batch && position < end) {
        // One place stays free for the end mark.
        const u32 room = SEGMENT_RING - 1 - (made - current);
        if (room == 0) break;
        const u32 sequence = base + lane;
        const u32 tiles = sequence < args.batch ? sequence_tiles(args, sequence, group_first_row) : 0;
        const u32 weight = axis_weight(tiles);
        const u32 after = warp_inclusive_sum(weight);
        const u32 start = position + after - weight;
        Segment segment{};
        if (weight != 0 && start < end && start + weight > begin) segment = cut_segment(args, share, sequence, tiles, start);
        const u32 found = __ballot_sync(~0u, segment.tiles != 0);
        const u32 rank = __popc(found & ((1u << lane) - 1));
        if (segment.tiles != 0 && rank < room) smem.segments[(made + rank) % SEGMENT_RING] = segment;
        if (__popc(found) > room) {
            // Go on with the first one that found no room.
            const u32 next = __ffs(__ballot_sync(~0u, segment.tiles != 0 && rank == room)) - 1;
            position = __shfl_sync(~0u, start, next);
            base += next;
            made += room;
        } else {
            position += __shfl_sync(~0u, after, 31);
            base += 32;
            made += __popc(found);
        }
    }
    if (lane == 0) {
        smem.segments[made % SEGMENT_RING].tiles = 0;
        smem.next_sequence = base;
        smem.next_position = position;
        smem.segments_made = made;
    }
    __syncwarp();
}

// What the linear plan is made from.
struct BatchTotals {
    u32 tiles;
    u32 sequences;  // that have any
    u32 longest;    // tiles

    __device__ __forceinline__ void add(u32 more) {
        tiles += more;
        sequences += more != 0;
        longest = max(longest, more);
    }
    __device__ __forceinline__ BatchTotals of_warp() const {
        return {__reduce_add_sync(~0u, tiles), __reduce_add_sync(~0u, sequences), __reduce_max_sync(~0u, longest)};
    }
    __device__ __forceinline__ u32 axis() const { return tiles + sequences * SEGMENT_COST; }
};

// The linear plan and its first segments, from a lane's part of the totals: for a large batch those of section `lane`.
template <class Shared>
__device__ __forceinline__ void plan_linear(const DecodeArgs& args, Shared& smem, const BatchTotals& mine, bool sections) {
    const BatchTotals all = mine.of_warp();
    u32 share = max((all.axis() + args.workers - 1) / args.workers, args.min_split_tiles + SEGMENT_COST);
    // Even batches: so many whole sequences a worker, where that takes little longer.
    const u32 most = all.longest + SEGMENT_COST, whole = (all.sequences + args.workers - 1) / args.workers * most;
    if (whole <= share + LINEAR_PENALTY) share = whole;
    AxisPlace first{0, 0};
    if (sections) first = section_at(args, mine.axis(), block_worker(args) * share);
    if (threadIdx.x == 0) {
        // Cuts between sequences are not looked for in any but even batches: elsewhere they are rare.
        const bool even = all.axis() == all.sequences * most && share % most == 0;
        smem.shared_sequences = all.axis() > share && !even;
        smem.plan_share = share;
        smem.segments_made = 0;
        smem.next_sequence = first.sequence;
        smem.next_position = first.position;
    }
    __syncwarp();
    extend_linear(args, smem, 0);
}

// The whole block. Leaves the plan and its first segments in shared memory.
template <class Shared>
__device__ __forceinline__ void plan_balanced(const DecodeArgs& args, Shared& smem) {
    const u32 group_first_row = block_row_group(args) * Shared::ROWS;
    const bool small = args.batch <= SMALL_BATCH;
    if (!small) sum_sections<BatchTotals>(args, smem, group_first_row);
    if (threadIdx.x < WARP) {
        SmallBatch tiles;
        if (small) load_small_batch(args, group_first_row, tiles);
        if (!small || !plan_aligned(args, smem, tiles)) {
            BatchTotals mine{};
            if (!small) {
                if (threadIdx.x < THREADS / WARP) mine = smem.template sections<BatchTotals>()[threadIdx.x];
            } else {
#pragma unroll
                for (u32 i = 0; i < SEQUENCES_A_LANE; ++i) mine.add(tiles[i]);
            }
            plan_linear(args, smem, mine, !small);
        }
    }
    __syncthreads();
}

}  // namespace snapmla
