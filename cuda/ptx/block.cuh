// A block's place in the grid.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// Opaque, so that what is derived from it is worked out anew where it is needed: none of that is worth a register all
// along.
__device__ __forceinline__ u32 block_index() {
    u32 index;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
    return index;
}

}  // namespace snapmla
