// Which sequence a row of a ragged batch belongs to.
#pragma once

#include "ptx/memory.cuh"
#include "ptx/types.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

// Lanes that look for one row's sequence.
constexpr u32 PROBES = 16;

// The last b in [0, batch) with starts_at[b] <= row, found by the half of a warp that shares `row`, both halves at
// once: 16 probes a step, so two steps for 256 sequences where a binary search would wait for memory eight times.
// `starts_at[0] <= row`, and it never decreases; whatever else it holds, the answer lies in [0, batch).
__device__ __forceinline__ u32 sequence_of(const i32* starts_at, u32 batch, i64 row, u32 lane) {
    const u32 first_lane = lane / PROBES * PROBES;
    u32 first = 0;
    u32 count = batch;
    // A step leaves at most ceil(count / 16), whatever it finds: the warp agrees on the number of steps.
    for (u32 most = batch; most > 1; most = (most + PROBES - 1) / PROBES) {
        const u32 step = (count + PROBES - 1) / PROBES;
        const u32 probe = lane % PROBES * step;
        const bool not_after = probe < count && load_i32(starts_at + first + probe) <= row;
        const u32 passed = max(__popc(warp_ballot(not_after) >> first_lane & ((1u << PROBES) - 1)), 1);
        const u32 skipped = (passed - 1) * step;
        first += skipped;
        count = min(step, count - skipped);
    }
    return first;
}

}  // namespace snapmla
