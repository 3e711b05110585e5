// Conversions between float, E4M3, BF16 and F16, two values at a time: the first is the low half.
// Rounding is to nearest even; E4M3 saturates at 448; a NaN becomes the target's canonical NaN.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cvt
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

__device__ __forceinline__ u16 e4m3x2_from_f32(float lo, float hi) {
    u16 v;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(hi), "f"(lo));
    return v;
}

// Exact: E4M3 is a subset of F16.
__device__ __forceinline__ u32 f16x2_from_e4m3x2(u16 x) {
    u32 v;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(v) : "h"(x));
    return v;
}

__device__ __forceinline__ u32 bf16x2_from_f32(float lo, float hi) {
    u32 v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
    return v;
}

__device__ __forceinline__ u32 f16x2_from_f32(float lo, float hi) {
    u32 v;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
    return v;
}

__device__ __forceinline__ float f32_from_f16(u16 x) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(x));
    return v;
}

}  // namespace snapmla
