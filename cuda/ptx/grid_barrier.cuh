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

// The phase that the word shows: to be read before this block arrives.
__device__ __forceinline__ u32 grid_barrier_phase(const u32* word) {
    u32 phase;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(phase) : "l"(word) : "memory");
    return phase & 0x80000000u;
}

// Counts this block in. Block 0 adds what makes the sum of all arrivals 2^31, so that the top bit flips once, with the
// last of them, and the word needs no reset. One thread a block.
__device__ __forceinline__ void grid_barrier_arrive(u32* word) {
    const u32 increment = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    asm volatile("red.add.release.gpu.u32 [%0], %1;" ::"l"(word), "r"(increment) : "memory");
}

// Spins until every block has arrived, which ends phase `phase`. One thread a block.
__device__ __forceinline__ void grid_barrier_wait(const u32* word, u32 phase) {
    u32 now;
    do {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
    } while ((now & 0x80000000u) == phase);
}

}  // namespace snapmla
