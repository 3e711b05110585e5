// Merging the splits of a sequence: every worker that had a split merges an equal share of the rows' items.
#pragma once

#include "decode/config.cuh"
#include "decode/output.cuh"
#include "ptx/barrier.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/shared.cuh"

namespace snapmla {

// A worker has at most one split that does not begin its sequence (its first segment) and one that begins its sequence
// without ending it (its last): two partials a worker and row group.
__device__ __forceinline__ u64 partial_slot(const DecodeArgs& args, u32 group, u32 worker, bool begins) {
    return (u64(2 * worker + begins)) * args.row_groups + group;
}

// Where a share of a merge is in shared memory: the ring is idle by then.
struct MergeShare {
    float4* parts;       // [split][items]
    float2* stats;       // [split][rows]: reference and sum; then .x is the split's weight
    RowTarget* targets;  // [rows]
    u32 first_row;
    u32 rows;
};

// Weights from references and sums; and the rows' log-sum-exps. A warp a row, a lane every 32nd split.
__device__ __forceinline__ void merge_weights(const DecodeArgs& args, const RowGroup& group, const MergeShare& share, u32 splits) {
    const u32 thread = threadIdx.x - SCORE_THREADS, lane = thread % WARP;
#pragma unroll 1
    for (u32 r = thread / WARP; r < share.rows; r += VALUE_THREADS / WARP) {
        float highest = NO_REFERENCE, sum = 0.f;
#pragma unroll 1
        for (u32 k = lane; k < splits; k += WARP) highest = fmaxf(highest, share.stats[k * share.rows + r].x);
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
#pragma unroll 1
        for (u32 k = lane; k < splits; k += WARP) {
            float2& stats = share.stats[k * share.rows + r];
            const float weight = exp2_approx(stats.x - highest);
            sum += stats.y == 0.f ? 0.f : stats.y * weight;
            stats.x = weight;
        }
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) {
            share.targets[r].inverse = inverse_sum(sum);
            if (group.has(share.first_row + r)) store_lse(args, group, share.first_row + r, highest, sum);
        }
    }
}

__device__ __forceinline__ void add_weighted(float4& total, const float4& part, float weight0, float weight1) {
    total.x = fmaf(part.x, weight0, total.x);
    total.y = fmaf(part.y, weight1, total.y);
    total.z = fmaf(part.z, weight0, total.z);
    total.w = fmaf(part.w, weight1, total.w);
}

// This worker's share of a sequence's merge: the value warpgroups, after the grid has met. All of the share's partials
// are asked for at once, by one copy a split, and complete phases of parity `parity`. Returns whether
// there was a share.
template <int ROWS>
__device__ __forceinline__ bool merge_splits(const DecodeArgs& args, SharedMemory<ROWS>& smem, const Split& split, u32 worker,
                                             u32 group, u32 first_row, u32 parity) {
    const u32 thread = threadIdx.x - SCORE_THREADS, splits = split.splits;
    constexpr u32 ITEMS = ROWS * CONTENT_DIM / 4;
    // Shares are whole lines of 128 bytes.
    constexpr u32 LINE = 8;
    static_assert((ITEMS + (LINE - 1) * MAX_WORKERS) * sizeof(float4) + (ROWS + 16 * MAX_WORKERS) * sizeof(float2) <=
                      sizeof(smem.stages),
                  "what a share merges stands in the ring");
    const u32 each = ((ITEMS + splits - 1) / splits + LINE - 1) / LINE * LINE;
    const u32 begin = min((worker - split.first_worker) * each, ITEMS), items = min(each, ITEMS - begin);
    if (items == 0) return false;
    MergeShare share;
    // 1,024 consecutive items cover eight rows.
    share.first_row = begin / 1024 * 8;
    share.rows = (begin + items - 1) / 1024 * 8 + 8 - share.first_row;
    share.parts = reinterpret_cast<float4*>(smem.stages);
    share.stats = reinterpret_cast<float2*>(share.parts + splits * items);
    share.targets = reinterpret_cast<RowTarget*>(smem.p);

    const u32 stats_barrier = shared_address(&smem.merged[0]), parts_barrier = shared_address(&smem.merged[1]);
    const u32 part_bytes = items * sizeof(float4), stats_bytes = share.rows * sizeof(float2);
    if (thread == 0) {
        mbarrier_arrive_expect_tx(stats_barrier, splits * stats_bytes);
        mbarrier_arrive_expect_tx(parts_barrier, splits * part_bytes);
    }
    // A warp issues its lanes' copies one after another, so all warps take part.
    const u32 k = thread % WARP * (VALUE_THREADS / WARP) + thread / WARP;
    if (k < splits) {
        // Others wrote them by ordinary stores.
        fence_proxy_async_global();
        const u64 slot = partial_slot(args, group, split.first_worker + k, k == 0);
        bulk_copy_g2s(shared_address(share.stats + k * share.rows), args.partial_stats + slot * ROWS + share.first_row,
                      stats_bytes, stats_barrier);
        bulk_copy_g2s(shared_address(share.parts + k * items), args.partial_out + slot * ITEMS + begin, part_bytes, parts_barrier);
    }
    const RowGroup rows = row_group(args, split.sequence, first_row);
    if (thread < share.rows)
        share.targets[thread].out = rows.has(share.first_row + thread) ? output_row(args, rows, share.first_row + thread) : nullptr;
    mbarrier_wait(stats_barrier, parity);
    merge_weights(args, rows, share, splits);
    mbarrier_wait(parts_barrier, parity);
    bar_sync(VALUE_BOTH, VALUE_THREADS);

    // Few items: teams of threads take every teams-th split of the same ones.
    const u32 teams = items >= VALUE_THREADS ? 1 : min(VALUE_THREADS / items, splits);
    const u32 team = teams == 1 ? 0 : thread / items;
    float4* sums = reinterpret_cast<float4*>(smem.queries);
#pragma unroll 1
    for (u32 item = teams == 1 ? thread : thread - team * items; item < items; item += VALUE_THREADS) {
        const ItemPlace place = item_place((begin + item) / VALUE_THREADS, (begin + item) % VALUE_THREADS);
        const float2* weights = share.stats + place.row - share.first_row;
        float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
        if (team < teams) {
#pragma unroll 4
            for (u32 k = team; k < splits; k += teams) {
                const float4 weight = *reinterpret_cast<const float4*>(weights + k * share.rows);
                add_weighted(total, share.parts[k * items + item], weight.x, weight.z);
            }
        }
        if (teams > 1) {
            sums[thread] = total;
            bar_sync(VALUE_BOTH, VALUE_THREADS);
            if (team != 0) break;
#pragma unroll 4
            for (u32 other = 1; other < teams; ++other) add_weighted(total, sums[other * items + item], 1.f, 1.f);
        }
        const RowTarget* targets = share.targets + place.row - share.first_row;
        if (targets[0].out != nullptr)
            store_pair(args, targets[0].out, place.dim, total.x * targets[0].inverse, total.z * targets[0].inverse);
        if (targets[1].out != nullptr)
            store_pair(args, targets[1].out, place.dim, total.y * targets[1].inverse, total.w * targets[1].inverse);
    }
    // The next merge's copies come to the same place.
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    return true;
}

}  // namespace snapmla
