// Maxima: packed within a register, and over a warp.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// Per half; a NaN loses to a number.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#half-precision-floating-point-instructions-max
__device__ __forceinline__ u32 max_bf16x2(u32 a, u32 b) {
    u32 v;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

__device__ __forceinline__ u32 max_f16x2(u32 a, u32 b) {
    u32 v;
    asm("max.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

// Per half, rounded to nearest; subnormal numbers count.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#half-precision-floating-point-instructions-mul
__device__ __forceinline__ u32 multiply_bf16x2(u32 a, u32 b) {
    u32 v;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

// Maximum over the warp, in every lane.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions-redux-sync
__device__ __forceinline__ u32 warp_max_u32(u32 x) {
    u32 v;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(v) : "r"(x));
    return v;
}

}  // namespace snapmla
