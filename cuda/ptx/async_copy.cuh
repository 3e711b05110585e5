// Copies from global to shared memory that a thread starts and does not wait for.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cp-async
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// 16 bytes, past L1.
__device__ __forceinline__ void copy_async_16(u32 dst, const void* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}

// 4 or 8 bytes.
template <int BYTES>
__device__ __forceinline__ void copy_async(u32 dst, const void* src) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(src), "n"(BYTES) : "memory");
}

// Waits for all of this thread's.
__device__ __forceinline__ void copy_async_wait_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace snapmla
