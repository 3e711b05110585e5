// A caller's element types. `Vector` holds the raw bits of VALUES neighbours: one 16-byte load, or as many single ones
// where rows are not aligned; `Pair` those of two.
#pragma once

#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "ptx/reduce.cuh"
#include "ptx/shuffle.cuh"
#include "ptx/types.cuh"

namespace snapmla {

// Largest magnitudes of a row.
struct Maxima {
    float content;
    float rope;
};

struct Bf16Format {
    static __device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
    static __device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
    static __device__ __forceinline__ u32 pack(float lo, float hi) { return bf16x2_from_f32(lo, hi); }
    static __device__ __forceinline__ u32 max_pair(u32 a, u32 b) { return max_bf16x2(a, b); }
    static constexpr bool FAR_SCALES = true;
    static constexpr u32 TINY = 0x2b80;  // 2^-40
    static __device__ __forceinline__ u32 multiply_pair(u32 a, u32 b) { return multiply_bf16x2(a, b); }
};

struct F16Format {
    static __device__ __forceinline__ float low(u32 pair) { return f32_from_f16(u16(pair)); }
    static __device__ __forceinline__ float high(u32 pair) { return f32_from_f16(u16(pair >> 16)); }
    static __device__ __forceinline__ u32 pack(float lo, float hi) { return f16x2_from_f32(lo, hi); }
    static __device__ __forceinline__ u32 max_pair(u32 a, u32 b) { return max_f16x2(a, b); }
    // From 2^-24 / 448 to 65504 / 448.
    static constexpr bool FAR_SCALES = false;
    static __device__ __forceinline__ u32 multiply_pair(u32 a, u32) { return a; }
};

template <class Format>
struct Element16 {
    static constexpr u32 BYTES = 2;
    static constexpr u32 VALUES = 8;
    // Whether a row's scale may lie outside 2^-60 to 2^60.
    static constexpr bool FAR_SCALES = Format::FAR_SCALES;
    using Vector = U32x4;
    using Pair = u32;

    static __device__ __forceinline__ Pair load_pair_elements(const u8* p) {
        return load_u16_cached(p) | u32(load_u16_cached(p + 2)) << 16;
    }
    static __device__ __forceinline__ Pair load_pair(const u8* p) { return load_u32(p); }
    static __device__ __forceinline__ Vector load_elements(const u8* p) {
        return {load_pair_elements(p), load_pair_elements(p + 4), load_pair_elements(p + 8), load_pair_elements(p + 12)};
    }

    static __device__ __forceinline__ float low(Pair pair) { return Format::low(pair); }
    static __device__ __forceinline__ float high(Pair pair) { return Format::high(pair); }
    static __device__ __forceinline__ void unpack(Vector v, float (&x)[VALUES]) {
        x[0] = low(v.x), x[1] = high(v.x), x[2] = low(v.y), x[3] = high(v.y);
        x[4] = low(v.z), x[5] = high(v.z), x[6] = low(v.w), x[7] = high(v.w);
    }

    static __device__ __forceinline__ void multiply(Vector& v, float factor) {
        const u32 pair = Format::pack(factor, factor);
        v = {Format::multiply_pair(v.x, pair), Format::multiply_pair(v.y, pair), Format::multiply_pair(v.z, pair),
             Format::multiply_pair(v.w, pair)};
    }

    static __device__ __forceinline__ Pair pack(float lo, float hi) { return Format::pack(lo, hi); }
    static __device__ __forceinline__ Vector pack(const float (&x)[VALUES]) {
        return {pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7])};
    }
    static __device__ __forceinline__ void store_pair(u8* p, Pair pair) { store_u32(p, pair); }
    static __device__ __forceinline__ void store_pair_elements(u8* p, Pair pair) {
        store_u16(p, u16(pair));
        store_u16(p + 2, u16(pair >> 16));
    }
    static __device__ __forceinline__ void store_elements(u8* p, Vector v) {
        store_pair_elements(p, v.x);
        store_pair_elements(p + 4, v.y);
        store_pair_elements(p + 8, v.z);
        store_pair_elements(p + 12, v.w);
    }

    // Largest magnitude, two at a time; 0 for nothing but NaN.
    static __device__ __forceinline__ float abs_max(Pair pair) {
        const u32 magnitude = pair & 0x7fff7fffu;
        return fmaxf(fmaxf(low(magnitude), high(magnitude)), 0.0f);
    }
    template <u32 N>
    static __device__ __forceinline__ float abs_max(const Vector (&vectors)[N]) {
        constexpr u32 MAGNITUDE = 0x7fff7fffu;
        u32 largest = 0;
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            const Vector v = vectors[i];
            const u32 a = Format::max_pair(v.x & MAGNITUDE, v.y & MAGNITUDE);
            const u32 b = Format::max_pair(v.z & MAGNITUDE, v.w & MAGNITUDE);
            largest = Format::max_pair(largest, Format::max_pair(a, b));
        }
        return abs_max(largest);
    }

    // Both halves of a word at a time, content and rope then side by side in one; 0 for nothing but NaN.
    template <u32 LANES, u32 N, u32 M>
    static __device__ __forceinline__ Maxima maxima(const Vector (&content)[N], const Pair (&rope)[M]) {
        u32 of_content = 0;
        u32 of_rope = 0;
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            const Vector v = content[i];
            const u32 a = Format::max_pair(v.x & MAGNITUDES, v.y & MAGNITUDES);
            const u32 b = Format::max_pair(v.z & MAGNITUDES, v.w & MAGNITUDES);
            of_content = Format::max_pair(of_content, Format::max_pair(a, b));
        }
#pragma unroll
        for (u32 i = 0; i < M; i++) of_rope = Format::max_pair(of_rope, rope[i] & MAGNITUDES);
        u32 both = Format::max_pair(__byte_perm(of_content, of_rope, 0x5410), __byte_perm(of_content, of_rope, 0x7632));
#pragma unroll
        for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
            both = Format::max_pair(both, warp_shuffle_xor_u32(both, distance));
        }
        return {fmaxf(low(both), 0.0f), fmaxf(high(both), 0.0f)};
    }

    // Whether some number is too small, or 0, for its quotient by a scale that is not far off to be near.
    template <u32 M>
    static __device__ __forceinline__ bool any_tiny(const Pair (&pairs)[M]) {
        bool tiny = false;
        if constexpr (FAR_SCALES) {
#pragma unroll
            for (u32 i = 0; i < M; i++) {
                tiny |= (pairs[i] & 0x7fffu) < Format::TINY || (pairs[i] & 0x7fff0000u) < Format::TINY << 16;
            }
        }
        return tiny;
    }

private:
    static constexpr u32 MAGNITUDES = 0x7fff7fffu;
};

using Bf16 = Element16<Bf16Format>;
using F16 = Element16<F16Format>;

struct F32 {
    static constexpr u32 BYTES = 4;
    static constexpr u32 VALUES = 4;
    static constexpr bool FAR_SCALES = false;  // LongDivision sees to them.
    using Vector = U32x4;
    using Pair = U32x2;

    static __device__ __forceinline__ Pair load_pair_elements(const u8* p) {
        return {load_u32_cached(p), load_u32_cached(p + 4)};
    }
    static __device__ __forceinline__ Pair load_pair(const u8* p) { return load_u32x2(p); }
    static __device__ __forceinline__ Vector load_elements(const u8* p) {
        return {load_u32_cached(p), load_u32_cached(p + 4), load_u32_cached(p + 8), load_u32_cached(p + 12)};
    }

    static __device__ __forceinline__ float low(Pair pair) { return __uint_as_float(pair.x); }
    static __device__ __forceinline__ float high(Pair pair) { return __uint_as_float(pair.y); }
    static __device__ __forceinline__ void unpack(Vector v, float (&x)[VALUES]) {
        x[0] = __uint_as_float(v.x), x[1] = __uint_as_float(v.y);
        x[2] = __uint_as_float(v.z), x[3] = __uint_as_float(v.w);
    }

    static __device__ __forceinline__ void multiply(Vector&, float) {}

    static __device__ __forceinline__ Pair pack(float lo, float hi) {
        return {__float_as_uint(lo), __float_as_uint(hi)};
    }
    static __device__ __forceinline__ Vector pack(const float (&x)[VALUES]) {
        return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])};
    }
    static __device__ __forceinline__ void store_pair(u8* p, Pair pair) { store_u32x2(p, pair); }
    static __device__ __forceinline__ void store_pair_elements(u8* p, Pair pair) {
        store_u32(p, pair.x);
        store_u32(p + 4, pair.y);
    }
    static __device__ __forceinline__ void store_elements(u8* p, Vector v) {
        store_pair_elements(p, {v.x, v.y});
        store_pair_elements(p + 8, {v.z, v.w});
    }

    // Largest magnitude; 0 for nothing but NaN.
    static __device__ __forceinline__ float abs_max(Pair pair) {
        return fmaxf(fmaxf(fabsf(low(pair)), fabsf(high(pair))), 0.0f);
    }
    template <u32 N>
    static __device__ __forceinline__ float abs_max(const Vector (&vectors)[N]) {
        float largest = 0.0f;
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            largest = fmaxf(largest, fmaxf(abs_max({vectors[i].x, vectors[i].y}), abs_max({vectors[i].z, vectors[i].w})));
        }
        return largest;
    }

    // 0 for nothing but NaN.
    template <u32 LANES, u32 N, u32 M>
    static __device__ __forceinline__ Maxima maxima(const Vector (&content)[N], const Pair (&rope)[M]) {
        Maxima largest = {0.0f, 0.0f};
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            const Vector v = content[i];
            largest.content = fmaxf(largest.content, fmaxf(abs_max({v.x, v.y}), abs_max({v.z, v.w})));
        }
#pragma unroll
        for (u32 i = 0; i < M; i++) largest.rope = fmaxf(largest.rope, abs_max(rope[i]));
#pragma unroll
        for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
            largest.content = fmaxf(largest.content, warp_shuffle_xor(largest.content, distance));
            largest.rope = fmaxf(largest.rope, warp_shuffle_xor(largest.rope, distance));
        }
        return largest;
    }
    // A quotient of two F32 numbers takes the division.
    template <u32 M>
    static __device__ __forceinline__ bool any_tiny(const Pair (&)[M]) { return true; }
};

}  // namespace snapmla
