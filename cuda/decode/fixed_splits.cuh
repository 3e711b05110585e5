// The plan whose splits depend on a sequence's own length alone, so that a row's bits do not depend on the rest of the
// batch. All splits of the batch stand on an axis, and worker k takes [k, k + 1) * share of it: each is a segment.
#pragma once

#include "decode/batch.cuh"
#include "decode/partials.cuh"

namespace snapmla {

// Tiles of a split, until a sequence would have more than MAX_FIXED_SPLITS: then they grow with it. Mirrored by
// src/plan.rs, which makes room for their partials.
constexpr u32 FIXED_SPLIT_TILES = 16;
constexpr u32 MAX_FIXED_SPLITS = 32;

__device__ __forceinline__ u32 fixed_split_tiles(u32 tiles) {
    return max(FIXED_SPLIT_TILES, (tiles + MAX_FIXED_SPLITS - 1) / MAX_FIXED_SPLITS);
}
__device__ __forceinline__ u32 fixed_splits(u32 tiles) {
    const u32 each = fixed_split_tiles(tiles);
    return (tiles + each - 1) / each;
}

struct SplitTotals {
    u32 splits;
    u32 most;  // of a sequence

    __device__ __forceinline__ void add(u32 tiles) {
        const u32 more = fixed_splits(tiles);
        splits += more;
        most = max(most, more);
    }
    __device__ __forceinline__ SplitTotals of_warp() const {
        return {__reduce_add_sync(~0u, splits), __reduce_max_sync(~0u, most)};
    }
};

// A split found on the axis.
struct FoundSplit {
    u32 sequence;
    u32 tiles;       // of the sequence
    u32 first_slot;  // split 0's place on the axis
    u32 split;
    u32 splits;
};

// Hands `store` the splits from `begin` to before `end` on the axis, a lane a sequence, and leaves in `place` where to go
// on. Returns what comes after the last one found: `end`, or less where the axis ends before. One warp.
template <int ROWS, class Store>
__device__ __forceinline__ u32 walk_splits(const DecodeArgs& args, u32 begin, u32 end, AxisPlace& place, const Store& store) {
    const u32 group_first_row = block_row_group(args) * ROWS;
#pragma unroll 1
    while (place.sequence < args.batch && begin < end) {
        const u32 sequence = place.sequence + lane_of();
        const u32 tiles = sequence < args.batch ? sequence_tiles(args, sequence, group_first_row) : 0;
        const u32 splits = fixed_splits(tiles), after = place.position + warp_inclusive_sum(splits), start = after - splits;
#pragma unroll 1
        for (u32 at = max(start, begin); at < min(after, end); ++at) store(at, FoundSplit{sequence, tiles, start, at - start, splits});
        const u32 last = __shfl_sync(~0u, after, WARP - 1);
        begin = max(begin, min(last, end));
        if (last > end) break;
        place = {place.sequence + WARP, last};
    }
    return begin;
}

// Adds segments to the ring while it has room: one warp. Segments before `current` may be overwritten. The list ends with
// a segment of no tiles.
template <class Shared>
__device__ __forceinline__ void extend_fixed(const DecodeArgs& args, Shared& smem, u32 current) {
    const u32 share = smem.plan_share, axis_begin = block_worker(args) * share;
    AxisPlace place{smem.next_sequence, smem.next_position};
    u32 made = smem.segments_made;
    __syncwarp();
    // One place stays free for the end mark.
    const u32 room = min(SEGMENT_RING - 1 - (made - current), share - made);
    const auto store = [&](u32 at, const FoundSplit& found) {
        const u32 each = fixed_split_tiles(found.tiles), first = found.split * each;
        smem.segments[(at - axis_begin) % SEGMENT_RING] = {
            found.sequence,   first,          min(each, found.tiles - first), sequence_length(args, found.sequence),
            query_span(args, found.sequence).first, found.first_slot, u16(found.split), u16(found.splits)};
    };
    made = walk_splits<Shared::ROWS>(args, axis_begin + made, axis_begin + made + room, place, store) - axis_begin;
    __syncwarp();
    if (lane_of() == 0) {
        smem.segments[made % SEGMENT_RING].tiles = 0;
        smem.next_sequence = place.sequence;
        smem.next_position = place.position;
        smem.segments_made = made;
    }
    __syncwarp();
}

// The whole block. Leaves the plan and its first segments in shared memory.
template <class Shared>
__device__ __forceinline__ void plan_fixed(const DecodeArgs& args, Shared& smem) {
    sum_sections<SplitTotals>(args, smem, block_row_group(args) * Shared::ROWS);
    if (threadIdx.x < WARP) {
        SplitTotals mine{};
        if (threadIdx.x < THREADS / WARP) mine = smem.template sections<SplitTotals>()[threadIdx.x];
        const SplitTotals all = mine.of_warp();
        const u32 share = (all.splits + args.workers - 1) / args.workers;
        const AxisPlace first = section_at(args, mine.splits, block_worker(args) * share);
        if (threadIdx.x == 0) {
            smem.shared_sequences = all.most > 1;
            smem.plan_share = share;
            smem.segments_made = 0;
            smem.next_sequence = smem.plan_sequence = first.sequence;
            smem.next_position = smem.plan_position = first.position;
        }
        __syncwarp();
        extend_fixed(args, smem, 0);
    }
    __syncthreads();
}

// The splits of this worker from number `from` of its own on, up to FIXED_MERGES of them, for merging: one warp, with
// `place` as the call before left it. Returns how many there are.
template <class Shared>
__device__ __forceinline__ u32 list_fixed_merges(const DecodeArgs& args, Shared& smem, u32 from, AxisPlace& place) {
    const u32 share = smem.plan_share, begin = block_worker(args) * share + from;
    return walk_splits<Shared::ROWS>(args, begin, begin + min(FIXED_MERGES, share - from), place,
                                     [&](u32 at, const FoundSplit& found) {
                                         smem.fixed_merges[at - begin] = {found.sequence, found.first_slot,
                                                                          u16(found.split), u16(found.splits)};
                                     }) -
           begin;
}

}  // namespace snapmla
