// Shared memory: addresses as the instructions want them, and accesses by such an address.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

__device__ __forceinline__ u32 shared_address(const void* p) {
    return u32(__cvta_generic_to_shared(p));
}

// The same value in every lane, and known to ptxas to be, since REDUX writes a uniform register. WGMMA must not be
// issued under a condition that ptxas takes for divergent, or it serialises them (C7520); a shuffle does not convince it.
__device__ __forceinline__ u32 warp_uniform(u32 value) {
    return __reduce_max_sync(~0u, value);
}

__device__ __forceinline__ u32 load_shared_u32(u32 address) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
    return v;
}

__device__ __forceinline__ float2 load_shared_f32x2(u32 address) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
    return v;
}

}  // namespace snapmla
