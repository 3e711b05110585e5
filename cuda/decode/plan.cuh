// Which worker takes which tiles, derived by every block from the sequence lengths.
//
// All row groups follow the same plan over sequences, so the blocks of a sequence's row groups read the same pages at
// the same time.
//
// This code runs once a launch, from a cold instruction cache: it is one warp's, and its loops stay loops.
#pragma once

#include "decode/balanced.cuh"
#include "decode/fixed_splits.cuh"

namespace snapmla {

// The whole block. Leaves the plan and its first segments in shared memory.
template <class Shared>
__device__ __forceinline__ void make_plan(const DecodeArgs& args, Shared& smem) {
    if constexpr (Shared::FIXED_SPLITS) {
        plan_fixed(args, smem);
    } else {
        plan_balanced(args, smem);
    }
}

// Adds segments to the ring while it has room: one warp. Segments before `current` may be overwritten. The list ends with
// a segment of no tiles.
template <class Shared>
__device__ __forceinline__ void extend_segments(const DecodeArgs& args, Shared& smem, u32 current) {
    if constexpr (Shared::FIXED_SPLITS) {
        extend_fixed(args, smem, current);
    } else {
        extend_linear(args, smem, current);
    }
}

}  // namespace snapmla
