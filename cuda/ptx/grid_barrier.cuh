// A barrier among all blocks of a cooperative launch.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// The word that the driver sets aside, zeroed, for every cooperative launch: the second of the workspace whose
// address it leaves in %envreg1 and %envreg2 (where cooperative_groups finds it too).
__device__ __forceinline__ u32* grid_barrier_word() {
    u32 high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    return reinterpret_cast<u32*>((u64(high) << 32) | low) + 1;
}

// Counts this block in. Block 0 adds what makes the sum of all arrivals 2^31, so that the top bit flips once, with the
// last of them, and the word needs no reset. Returns what to pass to the wait. One thread a block.
__device__ __forceinline__ u32 grid_barrier_arrive(u32* word) {
    const u32 increment = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    u32 before;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(increment) : "memory");
    return before;
}

// Spins until every block has arrived. One thread a block.
__device__ __forceinline__ void grid_barrier_wait(const u32* word, u32 before) {
    u32 now;
    do {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
    } while (((now ^ before) & 0x80000000u) == 0);
}

}  // namespace snapmla
