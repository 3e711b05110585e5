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

// The weights of the splits of rows first…first+count-1, [split][count], normalised; and the rows' log-sum-exps.
template <int ROWS>
__device__ __forceinline__ void merge_weights(const DecodeArgs& args, const RowGroup& rows, const Split& split, u32 group,
                                              u32 first, u32 count, float* weights) {
    const u32 thread = threadIdx.x - SCORE_THREADS, lane = thread % WARP;
    for (u32 i = thread / WARP; i < count; i += VALUE_THREADS / WARP) {
        const u32 r = first + i;
        float highest = NO_REFERENCE, sum = 0.f;
        for (u32 k = lane; k < split.splits; k += WARP) {
            const u64 slot = partial_slot(args, group, split.first_worker + k, k == 0);
            highest = fmaxf(highest, __ldcg(args.partial_stats + slot * ROWS + r).x);
        }
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
        for (u32 k = lane; k < split.splits; k += WARP) {
            const u64 slot = partial_slot(args, group, split.first_worker + k, k == 0);
            const float2 stats = __ldcg(args.partial_stats + slot * ROWS + r);
            const float weight = exp2_approx(stats.x - highest);
            weights[k * count + i] = weight;
            sum += stats.y == 0.f ? 0.f : stats.y * weight;
        }
#pragma unroll
        for (u32 step = 16; step != 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        const float inverse = inverse_sum(sum);
        for (u32 k = lane; k < split.splits; k += WARP) weights[k * count + i] *= inverse;
        if (lane == 0 && rows.has(r)) store_lse(args, rows, r, highest, sum);
    }
}

// This worker's share of a sequence's merge. The value warpgroups, after the grid has met.
template <int ROWS>
__device__ __forceinline__ void merge_splits(const DecodeArgs& args, SharedMemory& smem, const Split& split, u32 worker,
                                             u32 group, u32 first_row) {
    const u32 thread = threadIdx.x - SCORE_THREADS;
    const RowGroup rows = row_group(args, split.sequence, first_row);
    // Items of all threads, in whole warps.
    constexpr u32 ITEMS = ROWS * CONTENT_DIM / 4;
    const u32 each = ((ITEMS + split.splits - 1) / split.splits + WARP - 1) / WARP * WARP;
    const u32 begin = min((worker - split.first_worker) * each, ITEMS), end = min(begin + each, ITEMS);
    if (begin == end) return;
    // 1,024 consecutive items cover eight rows. The rings are idle now: weights at most [132][64], then sums.
    const u32 first = begin / 1024 * 8, count = (end - 1) / 1024 * 8 + 8 - first;
    float* weights = reinterpret_cast<float*>(smem.content);
    float4* sums = reinterpret_cast<float4*>(smem.content[2]);
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    merge_weights<ROWS>(args, rows, split, group, first, count, weights);
    bar_sync(VALUE_BOTH, VALUE_THREADS);

    // With few items, teams of threads take every teams-th split of the same items.
    const u32 items = end - begin;
    const u32 teams = items < VALUE_THREADS ? min(VALUE_THREADS / items, u32(split.splits)) : 1;
    const u32 team = teams == 1 ? 0 : thread / items;
    for (u32 base = begin; base < end; base += VALUE_THREADS) {
        const u32 item = base + (teams == 1 ? thread : thread % items);
        const bool works = item < end && team < teams;
        const ItemPlace place = item_place(item / VALUE_THREADS, item % VALUE_THREADS);
        float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
        if (works) {
            const float* weight = weights + place.row - first;
#pragma unroll 8
            for (u32 k = team; k < split.splits; k += teams) {
                const u64 slot = partial_slot(args, group, split.first_worker + k, k == 0);
                const float4 part = __ldcg(args.partial_out + slot * ITEMS + item);
                const float2 w = *reinterpret_cast<const float2*>(weight + k * count);
                total.x = fmaf(part.x, w.x, total.x);
                total.y = fmaf(part.y, w.y, total.y);
                total.z = fmaf(part.z, w.x, total.z);
                total.w = fmaf(part.w, w.y, total.w);
            }
        }
        if (teams > 1) {
            sums[thread] = total;
            bar_sync(VALUE_BOTH, VALUE_THREADS);
            for (u32 other = 1; team == 0 && works && other < teams; ++other) {
                const float4 part = sums[other * items + thread];
                total.x += part.x, total.y += part.y, total.z += part.z, total.w += part.w;
            }
        }
        if (works && team == 0) {
            with_output_type(args, [&](auto type) {
                using T = decltype(type);
                if (rows.has(place.row))
                    store_pair_as<T>(output_row(args, rows, place.row), place.dim, total.x, total.z, args.out_vectors);
                if (rows.has(place.row + 1))
                    store_pair_as<T>(output_row(args, rows, place.row + 1), place.dim, total.y, total.w, args.out_vectors);
            });
        }
    }
}

}  // namespace snapmla
