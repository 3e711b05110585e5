// Votes and shuffles of a whole warp.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// This thread's lane, read anew: what comes out of threadIdx is computed once, ahead of every loop, and kept in registers.
__device__ __forceinline__ u32 lane_of() {
    u32 lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// Likewise threadIdx.x.
__device__ __forceinline__ u32 thread_of() {
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

// Its warp within its warpgroup.
__device__ __forceinline__ u32 warp_of_group() { return thread_of() / WARP % 4; }

// The lanes where `vote` holds.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions-vote-sync
__device__ __forceinline__ u32 warp_ballot(bool vote) {
    u32 lanes;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %1, 0;\n"
        "vote.sync.ballot.b32 %0, p, 0xffffffff;\n"
        "}"
        : "=r"(lanes)
        : "r"(u32(vote)));
    return lanes;
}

// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-shfl-sync
__device__ __forceinline__ float warp_shuffle_xor(float x, u32 mask) {
    float v;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(v) : "f"(x), "r"(mask));
    return v;
}

__device__ __forceinline__ const u8* warp_shuffle(const u8* p, u32 lane) {
    return reinterpret_cast<const u8*>(__shfl_sync(~0u, reinterpret_cast<u64>(p), lane));
}

// Lane `lane`'s value.
__device__ __forceinline__ float warp_shuffle(float x, u32 lane) {
    float v;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(v) : "f"(x), "r"(lane));
    return v;
}

}  // namespace snapmla
