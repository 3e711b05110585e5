// Global loads and stores, one instruction a function.
//
// Loads skip L1, since every byte is read once. They are not `ld.global.nc`: that asks for memory that nobody writes
// while the kernel is resident, and a kernel launched programmatically is resident before its predecessor has ended.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-ld
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

__device__ __forceinline__ U32x4 load_u32x4(const void* p) {
    U32x4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

__device__ __forceinline__ U32x2 load_u32x2(const void* p) {
    U32x2 v;
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}

__device__ __forceinline__ u32 load_u32(const void* p) {
    u32 v;
    asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

// One element of a row whose elements are not 16-byte aligned: neighbours in the line follow, so L1 keeps it.
__device__ __forceinline__ u16 load_u16_cached(const void* p) {
    u16 v;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ u32 load_u32_cached(const void* p) {
    u32 v;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ i64 load_i64(const i64* p) {
    i64 v;
    asm volatile("ld.global.s64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}

// What the GPU's memory holds now, whatever L1 holds: for values that may change while the kernel is resident.
__device__ __forceinline__ i64 load_i64_relaxed(const i64* p) {
    i64 v;
    asm volatile("ld.relaxed.gpu.global.s64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ i32 load_i32(const i32* p) {
    i32 v;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ float load_f32(const float* p) {
    float v;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ void store_u32x4(void* p, U32x4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ __forceinline__ void store_u32x2(void* p, U32x2 v) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}

__device__ __forceinline__ void store_u32(void* p, u32 v) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ void store_u16(void* p, u16 v) {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory");
}

__device__ __forceinline__ void store_f32(float* p, float v) {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(p), "f"(v) : "memory");
}

// Brings the line of `p` to L2, which all multiprocessors share: whoever writes it later writes it there too, so this
// may run before the kernel is allowed to read.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-prefetch-prefetchu
__device__ __forceinline__ void prefetch_l2(const void* p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

}  // namespace snapmla
