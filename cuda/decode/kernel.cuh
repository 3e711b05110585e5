// Decode: FP8 attention over the paged cache, one cooperative launch. A block an SM; the files beside this one in the
// order of the data: args, plan, pages and queries in, score, value, output, splits.
#pragma once

#include "decode/args.cuh"
#include "decode/barriers.cuh"
#include "decode/config.cuh"
#include "decode/output.cuh"
#include "decode/pages.cuh"
#include "decode/plan.cuh"
#include "decode/queries.cuh"
#include "decode/score.cuh"
#include "decode/splits.cuh"
#include "decode/value.cuh"
#include "ptx/barrier.cuh"
#include "ptx/grid.cuh"
#include "ptx/grid_barrier.cuh"
#include "ptx/registers.cuh"

namespace snapmla {

template <class Shared>
__device__ __forceinline__ void init_shared(Shared& smem) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < Shared::STAGES; ++i) mbarrier_init(shared_address(&smem.full[i]), 1);
        mbarrier_init(shared_address(&smem.merged), 1);
        init_named_barriers();
        fence_mbarrier_init();
    }
    if (threadIdx.x < 2) smem.rescaled[threadIdx.x] = 0;
    clear_references(smem, threadIdx.x);
    if (threadIdx.x == WARP) {
        smem.num_merges = 0;
        smem.finished = ~0u;
        smem.finished_tiles = 0;
    }
}

// The value warpgroups through all segments.
template <class Shared>
__device__ __forceinline__ void value_segments(const DecodeArgs& args, Shared& smem) {
    constexpr int ROWS = Shared::ROWS;
    // The first queries have left the last two stages.
    if (brings_tiles(args) && smem.segments[0].tiles != 0) {
        constexpr u32 STAGES = Shared::STAGES;
        issue_tiles(args, smem, STAGES - 2, STAGES, look_up_tiles(args, smem, STAGES - 2));
    }
#pragma unroll 1
    while (true) {
        const u32 tile = smem.finished_tiles;
        const u32 end = tile + warp_uniform(smem.segments[(smem.finished + 1) % SEGMENT_RING].tiles);
        if (end == tile) break;
        Output<ROWS> o;
#pragma unroll
        for (int m = 0; m < 4; ++m)
#pragma unroll
            for (int i = 0; i < ROWS / 2; ++i) o[m][i] = 0.f;
        accumulate_segment<ROWS>(args, smem, threadIdx.x / WARPGROUP - 2, tile, end, o);
        bar_sync(STATS_READY, SCORE_THREADS + VALUE_THREADS);
        const Segment& segment = smem.segments[smem.finished % SEGMENT_RING];
        const u32 group = block_row_group(args);
        if (segment.splits == 1) {
            store_output<ROWS>(args, smem, segment.sequence, group * ROWS, o);
        } else {
            const u32 slot = segment.first_slot + slots_after_first<Shared::FIXED_SPLITS>(segment.split);
            store_partial<ROWS>(args, smem, slot * args.row_groups + group, o);
            if (!Shared::FIXED_SPLITS && threadIdx.x == SCORE_THREADS)
                smem.merges[smem.num_merges++] = {segment.sequence, segment.first_slot, segment.split, segment.splits};
        }
        bar_arrive(STATS_FREE, SCORE_THREADS + VALUE_THREADS);
    }
}

// Once every block's partials are written: this worker's share of the sequences it had splits of.
template <class Shared>
__device__ __forceinline__ void meet_and_merge(const DecodeArgs& args, Shared& smem) {
    const u32 group = block_row_group(args);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    // Every block: row groups of a ragged batch may differ in whether they wait.
    if (threadIdx.x == SCORE_THREADS) grid_barrier_arrive(grid_barrier_word());
    if (!smem.shared_sequences) return;
    const u32 merges = smem.num_merges;
    MergeOf<Shared> merge;
    // Worked out while the others arrive.
    if (merges != 0) merge = merge_of(args, smem, smem.merges[0], group);
    if (threadIdx.x == SCORE_THREADS) grid_barrier_wait(grid_barrier_word(), smem.grid_phase);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
#pragma unroll 1
    for (u32 i = 0, phases = 0; i < merges; ++i) {
        if (i != 0) merge = merge_of(args, smem, smem.merges[i], group);
        if (merge.items == 0) continue;
        merge_splits(args, smem, merge, phases & 1);
        ++phases;
    }
}

// The same for splits of a fixed size: whoever had split i of a sequence merges the i-th share of its rows. The
// lists are made anew from the plan, since a worker may have had any number of splits.
template <int ROWS>
__device__ __forceinline__ void meet_and_merge(const DecodeArgs& args, FixedSplitsMemory<ROWS>& smem) {
    const u32 group = block_row_group(args);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    if (threadIdx.x == SCORE_THREADS) grid_barrier_arrive(grid_barrier_word());
    if (!smem.shared_sequences) return;
    if (threadIdx.x == SCORE_THREADS) grid_barrier_wait(grid_barrier_word(), smem.grid_phase);
    AxisPlace place{smem.plan_sequence, smem.plan_position};
    u32 phases = 0;
#pragma unroll 1
    for (u32 from = 0; from < smem.plan_share; from += FIXED_MERGES) {
        if (threadIdx.x / WARP == SCORE_THREADS / WARP) {
            const u32 found = list_fixed_merges(args, smem, from, place);
            if (threadIdx.x == SCORE_THREADS) smem.num_merges = found;
        }
        bar_sync(VALUE_BOTH, VALUE_THREADS);
        const u32 merges = smem.num_merges;
#pragma unroll 1
        for (u32 i = 0; i < merges; ++i) {
            if (smem.fixed_merges[i].splits == 1) continue;
            const auto merge = merge_of(args, smem, smem.fixed_merges[i], group);
            if (merge.items == 0) continue;
            merge_splits(args, smem, merge, phases & 1);
            ++phases;
        }
        // The list has been read.
        bar_sync(VALUE_BOTH, VALUE_THREADS);
    }
}

// Registers of a score and of a value thread: 256 together. O takes 2 * ROWS of a value thread's.
template <int ROWS>
constexpr int SCORE_REGISTERS = ROWS == 64 ? 72 : 104;

template <class Shared>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    constexpr int ROWS = Shared::ROWS;
    extern __shared__ u8 dynamic_shared[];
    auto& smem = *reinterpret_cast<Shared*>(dynamic_shared);
    init_shared(smem);
    grid_dependency_wait();
    grid_launch_dependents();
    if (threadIdx.x == SCORE_THREADS) smem.grid_phase = grid_barrier_phase(grid_barrier_word());
    make_plan(args, smem);
    if (smem.segments[0].tiles != 0) {
        // Page ids are asked for before the queries, pages after them.
        const bool brings = threadIdx.x >= SCORE_THREADS && brings_tiles(args);
        Lookup lookup{};
        if (brings) lookup = look_up_tiles(args, smem, 0);
        const auto bring_tiles = [&] {
            if (brings) issue_tiles(args, smem, 0, Shared::STAGES - 2, lookup);
        };
        if (stages_queries(args)) {
            load_first_queries(args, smem, block_row_group(args) * ROWS, bring_tiles);
        } else {
            bring_tiles();
        }
    }
    fence_proxy_async();
    __syncthreads();
    const u32 warpgroup = warp_uniform(threadIdx.x / WARPGROUP);
    if (warpgroup < 2) {
        setmaxnreg_dec<SCORE_REGISTERS<ROWS>>();
        score_segments(args, smem, warpgroup);
        store_empty_sequences<ROWS>(args, threadIdx.x, SCORE_THREADS);
    } else {
        setmaxnreg_inc<256 - SCORE_REGISTERS<ROWS>>();
        value_segments(args, smem);
        meet_and_merge(args, smem);
    }
}

}  // namespace snapmla
