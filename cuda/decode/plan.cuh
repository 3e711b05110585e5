// Which worker takes which tiles, derived by every block from the sequence lengths.
//
// All row groups follow the same plan over sequences, so the blocks of a sequence's row groups read the same pages at
// the same time. A sequence's tiles stand on an axis, the workers cut the axis:
//   aligned: a sequence of T tiles is cut into ceil(T / chunk) equal splits, one worker each. Used when some chunk
//            near the average gives every worker at most one split.
//   linear:  every sequence takes its tiles plus SEGMENT_COST on the axis, and worker k takes [k, k + 1) * share of
//            it, in as many segments as that holds. Used for uneven or large batches.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"

namespace snapmla {

// Starting a segment costs about as much as this many tiles: queries to load, the score pipeline to fill.
constexpr u32 SEGMENT_COST = 4;
// Chunks that the aligned plan tries: up to 1.47 times the average.
constexpr u32 CHUNK_CANDIDATES = 16;
// What the linear plan must save, in tiles, to be worth its second segments and merges: 20 to 30 us.
constexpr u32 LINEAR_PENALTY = 20;

struct Plan {
    u32 chunk;       // tiles a split; 0 in the linear plan
    u32 share;       // axis positions a worker
    u32 begin, end;  // this worker's part of the axis
};

__device__ __forceinline__ Plan plan_of(u32 chunk, u32 share, u32 worker) {
    return {chunk, share, worker * share, worker * share + share};
}

// Tiles of a sequence for row group `group`: none when it has no such rows.
__device__ __forceinline__ u32 sequence_tiles(const DecodeArgs& args, u32 sequence, u32 group_first_row) {
    if (args.cu_q_lens != nullptr && query_span(args, sequence).count * args.num_heads <= group_first_row) return 0;
    return (sequence_length(args, sequence) + TILE_TOKENS - 1) / TILE_TOKENS;
}

// Splits of a sequence for a chunk, from 1 / chunk. Any number will do that everybody agrees on, so rounding does not
// matter.
__device__ __forceinline__ u32 count_splits(u32 tiles, float inverse_chunk) {
    return __float2uint_ru(__uint2float_rn(tiles) * inverse_chunk);
}

// Axis positions that a sequence of `tiles` takes.
__device__ __forceinline__ u32 axis_weight(const Plan& plan, u32 tiles) {
    if (plan.chunk != 0) return count_splits(tiles, __frcp_rn(plan.chunk));
    return tiles == 0 ? 0 : tiles + SEGMENT_COST;
}

__device__ __forceinline__ u32 warp_inclusive_sum(u32 value) {
    const u32 lane = threadIdx.x & 31;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// Part of a sequence, which starts at `position` on the axis, that falls to worker `worker`.
__device__ __forceinline__ Segment cut_segment(const DecodeArgs& args, const Plan& plan, u32 sequence, u32 tiles,
                                               u32 position, u32 worker) {
    Segment segment{sequence, 0, 0, sequence_length(args, sequence), query_span(args, sequence).first, 0, 1};
    if (plan.chunk != 0) {
        const u32 splits = axis_weight(plan, tiles), part = worker - position;
        const u32 first = u32(u64(part) * tiles / splits);
        segment.first_tile = first;
        segment.tiles = u32(u64(part + 1) * tiles / splits) - first;
        segment.first_worker = u16(position);
        segment.splits = u16(splits);
    } else {
        const u32 start = position + SEGMENT_COST;  // tile 0's place
        const u32 low = plan.begin > start ? plan.begin - start : 0;
        const u32 high = plan.end > start ? min(plan.end - start, tiles) : 0;
        segment.first_tile = low;
        segment.tiles = high > low ? high - low : 0;
        segment.first_worker = u16(start / plan.share);
        segment.splits = u16((start + tiles - 1) / plan.share - start / plan.share + 1);
    }
    return segment;
}

// Adds segments to the ring while it has room: one warp. Segments before `current` may be overwritten. The list ends
// with a segment of no tiles.
template <class Shared>
__device__ __forceinline__ void extend_segments(const DecodeArgs& args, Shared& smem, u32 current) {
    const u32 lane = threadIdx.x & 31, worker = block_worker(args);
    const u32 group_first_row = block_row_group(args) * Shared::ROWS;
    const Plan plan = plan_of(smem.plan_chunk, smem.plan_share, worker);
    u32 base = smem.next_sequence, position = smem.next_position, made = smem.segments_made;
    while (base < args.batch && position < plan.end) {
        // One place stays free for the end mark.
        const u32 room = SEGMENT_RING - 1 - (made - current);
        if (room == 0) break;
        const u32 sequence = base + lane;
        const u32 tiles = sequence < args.batch ? sequence_tiles(args, sequence, group_first_row) : 0;
        const u32 weight = axis_weight(plan, tiles);
        const u32 after = warp_inclusive_sum(weight);
        const u32 start = position + after - weight;
        Segment segment{};
        if (weight != 0 && start < plan.end && start + weight > plan.begin)
            segment = cut_segment(args, plan, sequence, tiles, start, worker);
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

// Over the warps of a block, from a value a warp in shared memory: the sum of those before this one, and of all.
struct WarpSums {
    u32 before;
    u32 total;
};

__device__ __forceinline__ WarpSums sum_over_warps(const u32* values) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 value = lane < THREADS / WARP ? values[lane] : 0;
    return {__reduce_add_sync(~0u, lane < warp ? value : 0), __reduce_add_sync(~0u, value)};
}

// The whole block. Leaves the plan and its first segments in shared memory.
template <class Shared>
__device__ __forceinline__ void make_plan(const DecodeArgs& args, Shared& smem) {
    const u32 worker = block_worker(args), group_first_row = block_row_group(args) * Shared::ROWS;
    const u32 tid = threadIdx.x, lane = tid % WARP, warp = tid / WARP;
    // Each thread takes `each` sequences in a row; for up to 512 sequences that is one, and its load is coalesced.
    const u32 each = (args.batch + THREADS - 1) / THREADS;
    const u32 first = min(tid * each, args.batch), last = min(first + each, args.batch);

    u32 tiles = 0, sequences = 0;
#pragma unroll 1
    for (u32 sequence = first; sequence < last; ++sequence) {
        const u32 more = sequence_tiles(args, sequence, group_first_row);
        tiles += more;
        sequences += more != 0;
    }
    if (tid < THREADS / WARP) smem.plan().splits[tid] = 0;
    const u32 warp_tiles = __reduce_add_sync(~0u, tiles), warp_sequences = __reduce_add_sync(~0u, sequences);
    if (lane == 0) {
        smem.plan().tiles[warp] = warp_tiles;
        smem.plan().sequences[warp] = warp_sequences;
    }
    __syncthreads();
    const u32 total_tiles = sum_over_warps(smem.plan().tiles).total;
    const u32 total_sequences = sum_over_warps(smem.plan().sequences).total;

    // The smallest candidate chunk that needs no more splits than there are workers.
    const u32 average = max((total_tiles + args.workers - 1) / args.workers, max(args.min_split_tiles, 1u));
    const bool try_chunks = total_sequences <= args.workers && each == 1;
    if (try_chunks && warp_tiles != 0) {
#pragma unroll 4
        for (u32 i = 0; i < CHUNK_CANDIDATES; ++i) {
            const u32 splits = __reduce_add_sync(~0u, count_splits(tiles, __frcp_rn(average + average * i / 32)));
            if (lane == 0) atomicAdd(&smem.plan().splits[i], splits);
        }
    }
    __syncthreads();
    u32 chunk = 0;
    if (try_chunks) {
        const bool fits = lane < CHUNK_CANDIDATES && smem.plan().splits[lane % CHUNK_CANDIDATES] <= args.workers;
        const u32 candidates = __ballot_sync(~0u, fits);
        if (candidates != 0) chunk = average + average * (__ffs(candidates) - 1) / 32;
    }
    const u32 axis = total_tiles + total_sequences * SEGMENT_COST;
    u32 share = max((axis + args.workers - 1) / args.workers, args.min_split_tiles + SEGMENT_COST);
    if (chunk > share + LINEAR_PENALTY) chunk = 0;
    if (chunk != 0) share = 1;
    const Plan plan = plan_of(chunk, share, worker);

    // Where on the axis this thread's sequences begin.
    u32 weight = 0;
    bool shared = false;
#pragma unroll 1
    for (u32 sequence = first; sequence < last; ++sequence) {
        const u32 more = each == 1 ? tiles : sequence_tiles(args, sequence, group_first_row);
        weight += axis_weight(plan, more);
        shared |= chunk != 0 && axis_weight(plan, more) > 1;
    }
    const u32 after = warp_inclusive_sum(weight);
    if (lane == WARP - 1) smem.plan().weights[warp] = after;
    if (tid == 0) {
        smem.plan_chunk = chunk;
        smem.plan_share = share;
        smem.segments_made = 0;
        smem.num_merges = 0;
        smem.finished = ~0u;
        smem.finished_tiles = 0;
        smem.next_sequence = args.batch;
        smem.next_position = 0;
    }
    shared = __syncthreads_or(shared);
    const WarpSums weights = sum_over_warps(smem.plan().weights);
    u32 position = weights.before + after - weight;
    if (position <= plan.begin && plan.begin < position + weight) {
        u32 sequence = first;
#pragma unroll 1
        for (; each > 1; ++sequence) {
            const u32 more = axis_weight(plan, sequence_tiles(args, sequence, group_first_row));
            if (plan.begin < position + more) break;
            position += more;
        }
        smem.next_sequence = sequence;
        smem.next_position = position;
    }
    // In the linear plan a cut that falls between sequences is rare enough not to look for.
    if (tid == 0) smem.shared_sequences = shared || (chunk == 0 && weights.total > share);
    __syncthreads();
    if (warp == 0) extend_segments(args, smem, 0);
    __syncthreads();
}

}  // namespace snapmla
