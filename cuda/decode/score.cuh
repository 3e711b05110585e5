// The score warpgroups: logits, softmax, and P for the value warpgroups. They take alternate tiles.
#pragma once

#include "decode/barriers.cuh"
#include "decode/config.cuh"
#include "decode/mask.cuh"
#include "decode/narrow.cuh"
#include "decode/pages.cuh"
#include "decode/plan.cuh"
#include "decode/queries.cuh"
#include "decode/rows.cuh"
#include "decode/wide.cuh"
#include "ptx/barrier.cuh"
#include "ptx/warp.cuh"
#include "ptx/wgmma.cuh"

namespace snapmla {

// How a tile is scored. Both ways have the same parts.
template <int ROWS>
struct TileOf {
    using Type = NarrowTile<ROWS>;
};
template <>
struct TileOf<64> {
    using Type = WideTile;
};
template <int ROWS>
using Tile = typename TileOf<ROWS>::Type;

// No row has a reference yet.
template <class Shared>
__device__ __forceinline__ void clear_references(Shared& smem, u32 thread) {
    if (thread < Shared::ROWS) smem.reference[thread] = smem.highest[thread] = NO_REFERENCE;
}

// Before a segment: more segments planned, its queries into shared memory, references cleared. The first one's queries
// may be there already.
template <class Shared>
__device__ __forceinline__ void begin_segment(const DecodeArgs& args, Shared& smem, const int group, u32 number) {
    if (number == 0 && stages_queries(args)) return;
    // Segment `number - 1` may still be read by the value warpgroups.
    if (number > 0 && warp_of_group() == 3 && group == 1) extend_segments(args, smem, number - 1);
    load_queries<2>(args, smem, smem.segments[number % SEGMENT_RING], block_row_group(args) * Shared::ROWS,
                    thread_of() / WARP, SCORE_THREADS / WARP);
    if (number > 0) bar_sync(STATS_FREE, SCORE_THREADS + VALUE_THREADS);
    clear_references(smem, thread_of());
    fence_proxy_async();
    bar_sync(SCORE_BOTH, SCORE_THREADS);
}

// After a segment: every barrier even again, and sums relative to the final references for the value warpgroups.
template <class Shared>
__device__ __forceinline__ void end_segment(Shared& smem, const int group, u32 number, u32 end,
                                            const typename Tile<Shared::ROWS>::State& state) {
    // The last tile's references have no successor to wait for them.
    const int last_group = (end - 1) & 1;
    if (group != last_group) bar_sync(REFERENCE_PASSED + last_group, SCORE_THREADS);
    // The value warpgroups look one tile ahead of each that they take: give them one past the last.
    if (group == last_group || smem.segments[number % SEGMENT_RING].tiles > 1) bar_sync(P_FREE + group, WARPGROUP + VALUE_THREADS);
    if (group != last_group) bar_arrive(P_READY + group, WARPGROUP + VALUE_THREADS);
    if (thread_of() == 0) {
        smem.finished = number;
        smem.finished_tiles = end;
    }
    bar_sync(SCORE_BOTH, SCORE_THREADS);
    Tile<Shared::ROWS>::store_sums(smem, group, state);
    bar_arrive(STATS_READY, SCORE_THREADS + VALUE_THREADS);
}

// Masks what rows do not attend to in the tile `within` tiles into the segment.
template <class Shared>
__device__ __forceinline__ void mask_tile(const DecodeArgs& args, Shared& smem, const int group, const Segment& segment, u32 within,
                                          u32 stage, typename Tile<Shared::ROWS>::Logits& s) {
    using Tile = Tile<Shared::ROWS>;
    const Attended attended = attended_of_tile(args, segment, within);
    Tile::spoil(smem, stage, s);
    bar_sync(SCORE_GROUP + group, WARPGROUP);
    mask_scales_and_values(smem, stage, min(attended.tokens, TILE_TOKENS), attended.by_all);
    Tile::mask(args, attended, s);
    bar_sync(SCORE_GROUP + group, WARPGROUP);
}

// One tile's logits in `s` to P, which goes to the value warpgroups together with the factors on O.
template <class Shared>
__device__ __forceinline__ void finish_tile(Shared& smem, const int group, u32 stage, bool first, bool first_own, bool careful,
                                            typename Tile<Shared::ROWS>::Logits& s, typename Tile<Shared::ROWS>::State& state) {
    using Tile = Tile<Shared::ROWS>;
    // References as the other warpgroup's tile left them.
    if (!first) bar_sync(REFERENCE_PASSED + (group ^ 1), SCORE_THREADS);
    const auto references = Tile::softmax(smem, group, stage, careful, s, state);
    bar_arrive(REFERENCE_PASSED + group, SCORE_THREADS);
    if (!first_own) bar_sync(P_FREE + group, WARPGROUP + VALUE_THREADS);
    Tile::publish(smem, group, s, references);
    fence_proxy_async();
    bar_arrive(P_READY + group, WARPGROUP + VALUE_THREADS);
}

// All segments of this block, by score warpgroup `group` (0 or 1).
template <class Shared>
__device__ __forceinline__ void score_segments(const DecodeArgs& args, Shared& smem, const int group) {
    using Tile = Tile<Shared::ROWS>;
    // One warp looks up the page ids of the tiles that will take this warpgroup's places in the ring: a lane a piece.
    const bool looks_up = warp_of_group() == 0;
    u32 tile = group;  // numbered through the block's segments
    Lookup next{0, NO_TILE};
    if (looks_up) next = look_up(args, smem, 0, tile + Shared::STAGES, lane_of());

#pragma unroll 1
    for (u32 number = 0;; ++number) {
        const u32 begin = warp_uniform(smem.finished_tiles);
        const u32 end = begin + warp_uniform(smem.segments[number % SEGMENT_RING].tiles);
        if (end == begin) break;
        begin_segment(args, smem, group, number);
        const u32 masked_from = warp_uniform(begin + first_masked(args, smem.segments[number % SEGMENT_RING]));
        typename Tile::State state;
#pragma unroll 1
        for (; tile < end; tile += 2) {
            const u32 stage = tile % Shared::STAGES;
            if (looks_up) {
                if (lane_of() < MAX_PIECES) smem.pieces[(tile + Shared::STAGES) % PIECE_RING][lane_of()] = next.piece(args);
                // For this warpgroup's next tile: a round early, so that nobody waits for it.
                next = look_up(args, smem, number, tile + 2 + Shared::STAGES - begin, lane_of());
            }
            mbarrier_wait(shared_address(&smem.full[stage]), tile / Shared::STAGES & 1);
            typename Tile::Logits s;
            Tile::issue_logits(s, smem, stage);
            wgmma_wait_group<0>();
            keep_in_registers(s);
            const bool careful = tile == begin || tile >= masked_from || args.scale_log2 < 0.f;
            if (tile >= masked_from) mask_tile(args, smem, group, smem.segments[number % SEGMENT_RING], tile - begin, stage, s);
            finish_tile(smem, group, stage, tile == begin, tile < begin + 2, careful, s, state);
        }
        end_segment(smem, group, number, end, state);
    }
}

}  // namespace snapmla
