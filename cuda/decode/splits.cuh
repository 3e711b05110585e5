// Merging the splits of a sequence: every worker that had a split merges an equal share of the rows' items.
#pragma once

#include "decode/config.cuh"
#include "decode/output.cuh"
#include "ptx/barrier.cuh"

namespace snapmla {

// A worker has at most one split that does not begin its sequence (its first segment) and one that begins its sequence
// without ending it (its last): two partials a worker and row group.
__device__ __forceinline__ u64 partial_slot(const DecodeArgs& args, u32 group, u32 worker, bool begins) {
    return (u64(2 * worker + begins)) * args.row_groups + group;
}

// The weights of the splits of rows first…first+count-1, [split][count], normalised; and the rows' log-sum-exps. A warp
// takes four rows at a time, a lane every 32nd split of them, so that all of a warp's loads are one trip to memory.
template <int ROWS>
__device__ __forceinline__ void merge_weights(const DecodeArgs& args, const RowGroup& rows, const Split& split, u32 group,
                                              u32 first, u32 count, float* weights) {
    constexpr u32 AT_ONCE = 4;
    const u32 thread = threadIdx.x - SCORE_THREADS, lane = thread % WARP;
    for (u32 base = thread / WARP * AT_ONCE; base < count; base += VALUE_THREADS / WARP * AT_ONCE) {
        float2 stats[AT_ONCE];
        float highest[AT_ONCE], sum[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) highest[i] = NO_REFERENCE, sum[i] = 0.f;
        const auto load = [&](u32 k) {
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) {
                const u64 slot = partial_slot(args, group, split.first_worker + k, k == 0);
                stats[i] = k < split.splits ? __ldcg(args.partial_stats + slot * ROWS + first + base + i) : make_float2(NO_REFERENCE, 0.f);
            }
        };
        for (u32 k = lane; k < split.splits + lane; k += WARP) {
            load(k);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) highest[i] = fmaxf(highest[i], stats[i].x);
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
#pragma unroll
            for (u32 step = 16; step != 0; step /= 2) highest[i] = fmaxf(highest[i], __shfl_xor_sync(~0u, highest[i], step));
        }
        for (u32 k = lane; k < split.splits + lane; k += WARP) {
            // One round's statistics are here already.
            if (split.splits > WARP) load(k);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) {
                const float weight = exp2_approx(stats[i].x - highest[i]);
                if (k < split.splits) weights[k * count + base + i] = weight;
                sum[i] += stats[i].y == 0.f ? 0.f : stats[i].y * weight;
            }
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
#pragma unroll
            for (u32 step = 16; step != 0; step /= 2) sum[i] += __shfl_xor_sync(~0u, sum[i], step);
            const float inverse = inverse_sum(sum[i]);
            for (u32 k = lane; k < split.splits; k += WARP) weights[k * count + base + i] *= inverse;
            if (lane == 0 && rows.has(first + base + i)) store_lse(args, rows, first + base + i, highest[i], sum[i]);
        }
    }
}

__device__ __forceinline__ void add_weighted(float4& total, const float4& part, const float2& weight) {
    total.x = fmaf(part.x, weight.x, total.x);
    total.y = fmaf(part.y, weight.y, total.y);
    total.z = fmaf(part.z, weight.x, total.z);
    total.w = fmaf(part.w, weight.y, total.w);
}

__device__ __forceinline__ void store_merged(const DecodeArgs& args, const RowGroup& rows, const ItemPlace& place,
                                             const float4& total) {
    if (rows.has(place.row)) store_pair(args, output_row(args, rows, place.row), place.dim, total.x, total.z);
    if (rows.has(place.row + 1)) store_pair(args, output_row(args, rows, place.row + 1), place.dim, total.y, total.w);
}

// This worker's share of a sequence's merge. The value warpgroups, after the grid has met.
template <int ROWS>
__device__ __forceinline__ void merge_splits(const DecodeArgs& args, SharedMemory<ROWS>& smem, const Split& split, u32 worker,
                                             u32 group, u32 first_row) {
    const u32 thread = threadIdx.x - SCORE_THREADS;
    const RowGroup rows = row_group(args, split.sequence, first_row);
    // Items of all threads, in whole warps.
    constexpr u32 ITEMS = ROWS * CONTENT_DIM / 4;
    const u32 each = ((ITEMS + split.splits - 1) / split.splits + WARP - 1) / WARP * WARP;
    const u32 begin = min((worker - split.first_worker) * each, ITEMS), end = min(begin + each, ITEMS);
    if (begin == end) return;
    // 1,024 consecutive items cover eight rows. The ring is idle now: weights at most [132][64], then sums.
    const u32 first = begin / 1024 * 8, count = (end - 1) / 1024 * 8 + 8 - first;
    float* weights = reinterpret_cast<float*>(&smem.stages[0]);
    float4* sums = reinterpret_cast<float4*>(&smem.stages[2]);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    merge_weights<ROWS>(args, rows, split, group, first, count, weights);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    const auto part_at = [&](u32 k, u32 item) {
        return __ldcg(args.partial_out + partial_slot(args, group, split.first_worker + k, k == 0) * ITEMS + item);
    };
    const auto weight_at = [&](u32 k, u32 row) {
        return *reinterpret_cast<const float2*>(weights + k * count + row - first);
    };

    const u32 items = end - begin;
    if (items >= VALUE_THREADS) {
        // Few splits: four items a thread at a time, so that enough loads are in flight.
        constexpr u32 AT_ONCE = 4;
        for (u32 base = begin + thread; base < end; base += AT_ONCE * VALUE_THREADS) {
            float4 total[AT_ONCE];
            ItemPlace place[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) {
                const u32 item = base + i * VALUE_THREADS;
                total[i] = make_float4(0.f, 0.f, 0.f, 0.f);
                place[i] = item_place(item / VALUE_THREADS, item % VALUE_THREADS);
            }
#pragma unroll 2
            for (u32 k = 0; k < split.splits; ++k) {
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; ++i) {
                    const u32 item = base + i * VALUE_THREADS;
                    if (item < end) add_weighted(total[i], part_at(k, item), weight_at(k, place[i].row));
                }
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i)
                if (base + i * VALUE_THREADS < end) store_merged(args, rows, place[i], total[i]);
        }
        return;
    }
    // Many splits, few items: teams of threads take every teams-th split of the same items.
    const u32 teams = min(VALUE_THREADS / items, u32(split.splits)), team = thread / items;
    const u32 item = begin + thread % items;
    const ItemPlace place = item_place(item / VALUE_THREADS, item % VALUE_THREADS);
    float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
    if (team < teams) {
#pragma unroll 8
        for (u32 k = team; k < split.splits; k += teams) add_weighted(total, part_at(k, item), weight_at(k, place.row));
    }
    sums[thread] = total;
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    if (team != 0) return;
    for (u32 other = 1; other < teams; ++other) {
        const float4 part = sums[other * items + thread];
        total.x += part.x, total.y += part.y, total.z += part.z, total.w += part.w;
    }
    store_merged(args, rows, place, total);
}

}  // namespace snapmla
