// Which sequence a row of a ragged batch belongs to.
#pragma once

#include "ptx/memory.cuh"
#include "ptx/types.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

// The last b in [0, batch) with starts_at[b] <= row, found by the whole warp: 32 probes a step, so two steps for 1,024
// sequences where a binary search would wait for memory ten times. `starts_at[0] <= row`, and it never decreases;
// whatever else it holds, the answer lies in [0, batch).
__device__ __forceinline__ u32 sequence_of(const i32* starts_at, u32 batch, i64 row, u32 lane) {
    u32 first = 0;
    u32 count = batch;
    while (count > 1) {
        const u32 step = (count + WARP - 1) / WARP;
        const u32 probe = lane * step;
        const bool not_after = probe < count && load_i32(starts_at + first + probe) <= row;
        const u32 passed = max(__popc(warp_ballot(not_after)), 1);
        const u32 skipped = (passed - 1) * step;
        first += skipped;
        count = min(step, count - skipped);
    }
    return first;
}

}  // namespace snapmla
