// Decode: FP8 attention over the paged cache, one cooperative launch. A block an SM; see decode/ in the order of the
// data: args, plan, pages and queries in, score, value, output, splits.
#include "decode/args.cuh"
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
template <int ROWS>
__device__ __forceinline__ void value_segments(const DecodeArgs& args, SharedMemory<ROWS>& smem) {
    // The first queries have left the last two stages.
    if (warp_uniform(threadIdx.x / WARP) == SCORE_THREADS / WARP && smem.segments[0].tiles != 0) {
        constexpr u32 STAGES = SharedMemory<ROWS>::STAGES;
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
        const u32 worker = block_worker(args), group = block_row_group(args);
        if (segment.splits == 1) {
            store_output<ROWS>(args, smem, segment.sequence, group * ROWS, o);
        } else {
            store_partial<ROWS>(args, smem, partial_slot(args, group, worker, segment.first_worker == worker), o);
            if (threadIdx.x == SCORE_THREADS)
                smem.merges[smem.num_merges++] = {segment.sequence, segment.first_worker, segment.splits};
        }
        bar_arrive(STATS_FREE, SCORE_THREADS + VALUE_THREADS);
    }
}

// Once every block's partials are written: this worker's share of the sequences it had splits of.
template <int ROWS>
__device__ __forceinline__ void meet_and_merge(const DecodeArgs& args, SharedMemory<ROWS>& smem) {
    const u32 worker = block_worker(args), group = block_row_group(args);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    // Every block: row groups of a ragged batch may differ in whether they wait.
    if (threadIdx.x == SCORE_THREADS) grid_barrier_arrive(grid_barrier_word());
    if (!smem.shared_sequences) return;
    const u32 merges = smem.num_merges;
    Merge<ROWS> merge;
    // Worked out while the others arrive.
    if (merges != 0) merge = merge_of<ROWS>(args, smem, smem.merges[0], worker, group);
    if (threadIdx.x == SCORE_THREADS) grid_barrier_wait(grid_barrier_word(), smem.grid_phase);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
#pragma unroll 1
    for (u32 i = 0, phases = 0; i < merges; ++i) {
        if (i != 0) merge = merge_of<ROWS>(args, smem, smem.merges[i], worker, group);
        if (merge.items == 0) continue;
        merge_splits<ROWS>(args, smem, merge, phases & 1);
        ++phases;
    }
}

// Registers of a score and of a value thread: 256 together. O takes 2 * ROWS of a value thread's.
template <int ROWS>
constexpr int SCORE_REGISTERS = ROWS == 64 ? 72 : 104;

template <int ROWS>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    extern __shared__ u8 dynamic_shared[];
    auto& smem = *reinterpret_cast<SharedMemory<ROWS>*>(dynamic_shared);
    init_shared(smem);
    grid_dependency_wait();
    grid_launch_dependents();
    if (threadIdx.x == SCORE_THREADS) smem.grid_phase = grid_barrier_phase(grid_barrier_word());
    make_plan(args, smem);
    if (smem.segments[0].tiles != 0) {
        // Page ids are asked for before the queries, pages after them.
        const bool brings_tiles = threadIdx.x / WARP == SCORE_THREADS / WARP;
        Lookup lookup{};
        if (brings_tiles) lookup = look_up_tiles(args, smem, 0);
        const auto bring_tiles = [&] {
            if (brings_tiles) issue_tiles(args, smem, 0, SharedMemory<ROWS>::STAGES - 2, lookup);
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
        value_segments<ROWS>(args, smem);
        meet_and_merge<ROWS>(args, smem);
    }
}

}  // namespace snapmla

#define SNAPMLA_DECODE(name, rows)                                          \
    extern "C" __global__ void __launch_bounds__(snapmla::THREADS, 1)       \
        name(const __grid_constant__ snapmla::DecodeArgs args) {            \
        snapmla::decode<rows>(args);                                        \
    }

SNAPMLA_DECODE(snapmla_decode_16, 16)
SNAPMLA_DECODE(snapmla_decode_32, 32)
SNAPMLA_DECODE(snapmla_decode_64, 64)
