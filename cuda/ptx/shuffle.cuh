// Integers from other lanes of the warp.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-shfl-sync
#pragma once

#include "ptx/types.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

__device__ __forceinline__ u32 warp_shuffle_xor_u32(u32 x, u32 mask) {
    u32 v;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(v) : "r"(x), "r"(mask));
    return v;
}

// Lane `lane`'s value.
__device__ __forceinline__ i64 warp_shuffle_i64(i64 x, u32 lane) {
    u32 low;
    u32 high;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(low) : "r"(u32(x)), "r"(lane));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(high) : "r"(u32(u64(x) >> 32)), "r"(lane));
    return i64(u64(high) << 32 | low);
}

}  // namespace snapmla
