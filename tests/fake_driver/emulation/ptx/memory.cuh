// cuda/ptx/memory.cuh for the host. Stops at an address that the GPU would fault on.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

template <class V>
inline V load_aligned(const void* p) {
    if (uintptr_t(p) % sizeof(V) != 0) fault("a misaligned load");
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class V>
inline void store_aligned(void* p, V v) {
    if (uintptr_t(p) % sizeof(V) != 0) fault("a misaligned store");
    std::memcpy(p, &v, sizeof v);
}

inline U32x4 load_u32x4(const void* p) { return load_aligned<U32x4>(p); }
inline U32x2 load_u32x2(const void* p) { return load_aligned<U32x2>(p); }
inline u32 load_u32(const void* p) { return load_aligned<u32>(p); }
inline u16 load_u16_cached(const void* p) { return load_aligned<u16>(p); }
inline u32 load_u32_cached(const void* p) { return load_aligned<u32>(p); }
inline i64 load_i64(const i64* p) { return load_aligned<i64>(p); }
inline i64 load_i64_relaxed(const i64* p) { return load_aligned<i64>(p); }
inline void prefetch_l2(const void*) {}
inline i32 load_i32(const i32* p) { return load_aligned<i32>(p); }
inline float load_f32(const float* p) { return load_aligned<float>(p); }
inline void store_u32x4(void* p, U32x4 v) { store_aligned(p, v); }
inline void store_u32x2(void* p, U32x2 v) { store_aligned(p, v); }
inline void store_u32(void* p, u32 v) { store_aligned(p, v); }
inline void store_u16(void* p, u16 v) { store_aligned(p, v); }
inline void store_f32(float* p, float v) { store_aligned(p, v); }

}  // namespace snapmla
