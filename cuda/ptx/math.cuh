// Approximate base-2 exponential and logarithm: relative errors of 2^-22, results below the normal range flushed.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float log2_approx(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace snapmla
