// Named barriers: `threads` threads meet, some of which do not wait.
//
// racecheck of compute-sanitizer takes `bar.arrive` for no order at all, and reports every hand-over through one. A build
// with SNAPMLA_TRACEABLE_BARRIERS has an mbarrier, which it follows, in each one's place: for that tool only.
#pragma once

#include "ptx/shared.cuh"
#include "ptx/types.cuh"

namespace snapmla {

#ifdef SNAPMLA_TRACEABLE_BARRIERS

// They lie at the end of all the shared memory that a block gets, which its own structures leave free.
__device__ __forceinline__ u32 named_barrier_address(int id) {
    extern __shared__ u8 dynamic_shared[];
    return shared_address(dynamic_shared) + MAX_SHARED - (16 - id) * 8;
}

// One thread, ahead of a __syncthreads.
__device__ __forceinline__ void named_barrier_init(int id, int threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(named_barrier_address(id)), "r"(threads) : "memory");
}

__device__ __forceinline__ void bar_sync(int id, int) {
    asm volatile(
        "{\n.reg .pred done;\n.reg .b64 phase;\n"
        "mbarrier.arrive.shared::cta.b64 phase, [%0];\n"
        "waiting:\n"
        "mbarrier.try_wait.shared::cta.b64 done, [%0], phase;\n"
        "@!done bra waiting;\n}" ::"r"(named_barrier_address(id))
        : "memory");
}

__device__ __forceinline__ void bar_arrive(int id, int) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(named_barrier_address(id)) : "memory");
}

#else

// The hardware's need nothing.
__device__ __forceinline__ void named_barrier_init(int, int) {}

// Waits until `threads` threads have synced or arrived at named barrier `id`.
__device__ __forceinline__ void bar_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Counts this warp in at named barrier `id` and goes on.
__device__ __forceinline__ void bar_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

#endif

}  // namespace snapmla
