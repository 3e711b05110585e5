// Merging the splits of a sequence: every worker that had a split merges an equal share of the rows' items.
#pragma once

#include "decode/barriers.cuh"
#include "decode/config.cuh"
#include "decode/output.cuh"
#include "decode/partials.cuh"
#include "ptx/barrier.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/shared.cuh"

namespace snapmla {

// What a worker merges of one sequence: items begin…begin+items-1 of the rows' outputs, out of all of its splits. The
// ring is idle by then and holds it.
template <int ROWS, bool FIXED_SPLITS>
struct Merge {
    static constexpr u32 ITEMS = ROWS * CONTENT_DIM / 4;
    // Shares are whole lines of 128 bytes.
    static constexpr u32 LINE = 8;

    RowGroup group;
    u32 splits;
    u32 first_partial;     // split 0's
    u32 begin, items;
    u32 first_row, rows;   // that the items belong to: 1,024 consecutive items cover eight
    u32 teams, team;       // few items: teams of threads take every teams-th split of the same ones
    float4* parts;         // [split][items]
    float* weights;        // [split][rows]
    RowTarget* targets;    // [rows]

    __device__ __forceinline__ u32 partial(const DecodeArgs& args, u32 split) const {
        return first_partial + slots_after_first<FIXED_SPLITS>(split) * args.row_groups;
    }
};

template <class Shared>
using MergeOf = Merge<Shared::ROWS, Shared::FIXED_SPLITS>;

template <class Shared>
__device__ __forceinline__ MergeOf<Shared> merge_of(const DecodeArgs& args, Shared& smem, const Split& split, u32 group) {
    using Merge = MergeOf<Shared>;
    constexpr int ROWS = Shared::ROWS;
    static_assert((Merge::ITEMS + (Merge::LINE - 1) * MAX_WORKERS) * sizeof(float4) + (ROWS + 16 * MAX_WORKERS) * sizeof(float) <=
                      sizeof(smem.stages),
                  "what a share merges stands in the ring");
    const u32 thread = threadIdx.x - SCORE_THREADS;
    Merge merge;
    merge.splits = split.splits;
    const u32 each = ((Merge::ITEMS + merge.splits - 1) / merge.splits + Merge::LINE - 1) / Merge::LINE * Merge::LINE;
    merge.begin = min(split.split * each, Merge::ITEMS);
    merge.items = min(each, Merge::ITEMS - merge.begin);
    merge.first_row = merge.begin / 1024 * 8;
    merge.rows = (merge.begin + merge.items - 1) / 1024 * 8 + 8 - merge.first_row;
    merge.teams = merge.items >= VALUE_THREADS || merge.items == 0 ? 1 : min(VALUE_THREADS / merge.items, merge.splits);
    merge.team = merge.teams == 1 ? 0 : thread / merge.items;
    merge.first_partial = split.first_slot * args.row_groups + group;
    merge.parts = reinterpret_cast<float4*>(smem.stages);
    merge.weights = reinterpret_cast<float*>(merge.parts + merge.splits * merge.items);
    merge.targets = reinterpret_cast<RowTarget*>(smem.p);
    merge.group = row_group(args, split.sequence, group * ROWS);
    if (merge.items != 0 && thread < merge.rows) {
        const u32 row = merge.first_row + thread;
        merge.targets[thread].out = merge.group.has(row) ? output_row(args, merge.group, row) : nullptr;
    }
    return merge;
}

// Weights of the splits, and the rows' log-sum-exps. A warp a row, a lane every 32nd split.
template <int ROWS, bool FIXED_SPLITS>
__device__ __forceinline__ void merge_weights(const DecodeArgs& args, const Merge<ROWS, FIXED_SPLITS>& merge) {
    constexpr u32 AT_MOST = (MAX_WORKERS + WARP - 1) / WARP;
    const u32 thread = threadIdx.x - SCORE_THREADS, lane = thread % WARP;
#pragma unroll 1
    for (u32 r = thread / WARP; r < merge.rows; r += VALUE_THREADS / WARP) {
        float2 stats[AT_MOST];
        const float2* from = args.partial_stats + merge.first_row + r;
#pragma unroll
        for (u32 i = 0; i < AT_MOST; ++i) {
            const u32 k = lane + i * WARP;
            stats[i] = k < merge.splits ? __ldcg(from + u64(merge.partial(args, k)) * ROWS) : make_float2(NO_REFERENCE, 0.f);
        }
        float highest = NO_REFERENCE, sum = 0.f;
#pragma unroll
        for (u32 i = 0; i < AT_MOST; ++i) highest = fmaxf(highest, stats[i].x);
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
#pragma unroll
        for (u32 i = 0; i < AT_MOST; ++i) {
            const u32 k = lane + i * WARP;
            const float weight = exp2_approx(stats[i].x - highest);
            sum += stats[i].y == 0.f ? 0.f : stats[i].y * weight;
            if (k < merge.splits) merge.weights[k * merge.rows + r] = weight;
        }
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) {
            merge.targets[r].inverse = inverse_sum(sum);
            if (merge.group.has(merge.first_row + r)) store_lse(args, merge.group, merge.first_row + r, highest, sum);
        }
    }
}

__device__ __forceinline__ void add_weighted(float4& total, const float4& part, const float2& weight) {
    total.x = fmaf(part.x, weight.x, total.x);
    total.y = fmaf(part.y, weight.y, total.y);
    total.z = fmaf(part.z, weight.x, total.z);
    total.w = fmaf(part.w, weight.y, total.w);
}

// This worker's share of a sequence's merge: the value warpgroups, after the grid has met. All of the share's partials
// are asked for at once, by one copy a split, and complete a phase of parity `parity`.
template <class Shared>
__device__ __forceinline__ void merge_splits(const DecodeArgs& args, Shared& smem, const MergeOf<Shared>& merge, u32 parity) {
    const u32 thread = threadIdx.x - SCORE_THREADS, splits = merge.splits, items = merge.items;
    const u32 barrier = shared_address(&smem.merged), bytes = items * sizeof(float4);
    if (thread == 0) mbarrier_arrive_expect_tx(barrier, splits * bytes);
    // A warp issues its lanes' copies one after another, so all warps take part.
    const u32 k = thread % WARP * (VALUE_THREADS / WARP) + thread / WARP;
    if (k < splits) {
        // Others wrote them by ordinary stores.
        fence_proxy_async_global();
        bulk_copy_g2s(shared_address(merge.parts + k * items),
                      args.partial_out + u64(merge.partial(args, k)) * MergeOf<Shared>::ITEMS + merge.begin, bytes, barrier);
    }
    merge_weights(args, merge);
    mbarrier_wait(barrier, parity);
    bar_sync(VALUE_BOTH, VALUE_THREADS);

    float4* sums = reinterpret_cast<float4*>(smem.queries);
#pragma unroll 1
    for (u32 item = thread - merge.team * items; item < items; item += VALUE_THREADS) {
        const ItemPlace place = item_place((merge.begin + item) / VALUE_THREADS, (merge.begin + item) % VALUE_THREADS);
        const float* weights = merge.weights + place.row - merge.first_row;
        float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
        if (merge.team < merge.teams) {
#pragma unroll 4
            for (u32 split = merge.team; split < splits; split += merge.teams) {
                add_weighted(total, merge.parts[split * items + item],
                             *reinterpret_cast<const float2*>(weights + split * merge.rows));
            }
        }
        if (merge.teams > 1) {
            sums[thread] = total;
            bar_sync(VALUE_BOTH, VALUE_THREADS);
            if (merge.team != 0) break;
#pragma unroll 4
            for (u32 other = 1; other < merge.teams; ++other) add_weighted(total, sums[other * items + item], {1.f, 1.f});
        }
        const RowTarget* targets = merge.targets + place.row - merge.first_row;
        if (targets[0].out != nullptr)
            store_pair(args, targets[0].out, place.dim, total.x * targets[0].inverse, total.z * targets[0].inverse);
        if (targets[1].out != nullptr)
            store_pair(args, targets[1].out, place.dim, total.y * targets[1].inverse, total.w * targets[1].inverse);
    }
    // The next merge's copies come to the same place.
    bar_sync(VALUE_BOTH, VALUE_THREADS);
}

}  // namespace snapmla
