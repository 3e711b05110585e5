// A warp quantises one row: 512 numbers of content to E4M3, 64 of rope to BF16, one scale.
//
// The bytes are those of the definition (max|c| / 448, c / s, r / s, each correctly rounded), and so the CPU's.
#pragma once

#include "element.cuh"
#include "layout.cuh"
#include "ptx/convert.cuh"
#include "ptx/reduce.cuh"
#include "ptx/types.cuh"

namespace snapmla {

// A lane's share of a row as loaded: vector i holds dims (32 i + lane) * VALUES onwards, so that each of the warp's
// loads is one unbroken 512 bytes; the pair holds rope dims 2 lane and 2 lane + 1.
template <class T>
struct RawRow {
    static constexpr u32 VECTORS = CONTENT_DIM / (WARP * T::VALUES);

    typename T::Vector content[VECTORS];
    typename T::Pair rope;

    static __device__ __forceinline__ u32 dim(u32 vector, u32 lane) { return (WARP * vector + lane) * T::VALUES; }

    // `vector`: content is 16-byte aligned, and rope aligned to two elements.
    __device__ __forceinline__ void load(const u8* content_row, const u8* rope_row, bool vector, u32 lane) {
        const u8* rope_pair = rope_row + 2 * T::BYTES * lane;
        if (vector) {
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) content[i] = load_u32x4(content_row + dim(i, lane) * T::BYTES);
            rope = T::load_pair(rope_pair);
        } else {
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) content[i] = T::load_elements(content_row + dim(i, lane) * T::BYTES);
            rope = T::load_pair_elements(rope_pair);
        }
    }
};

// A lane's share of the same row quantised: word j of vector i holds dims 4 j onwards of the vector's.
template <class T>
struct QuantisedRow {
    static constexpr u32 WORDS = T::VALUES / 4;

    u32 content[RawRow<T>::VECTORS][WORDS];
    u32 rope;
    float scale;
};

// Division by a row's scale, correctly rounded. With 1 / s correctly rounded, a product and two fused steps do it
// (Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
// advance", IEEE TC 2004); written with the remainder's sign turned, so that -0 / s stays -0. That holds while nothing
// underflows on the way to a quotient that E4M3 does not flush anyway: a far-off scale is first brought near 1, and the
// dividend with it, by a power of two. An infinite scale becomes 0 with inverse 0: numbers go to 0, infinities to NaN.
class ScaleDivision {
    float given;
    float lift;
    float scale;
    float reciprocal;

public:
    __device__ __forceinline__ explicit ScaleDivision(float s) : given(s) {
        lift = s < 0x1p-60f ? 0x1p100f : s > 0x1p60f ? 0x1p-100f : 1.0f;
        const bool finite = s < __uint_as_float(0x7f800000u);
        scale = finite ? s * lift : 0.0f;
        reciprocal = finite ? __frcp_rn(scale) : 0.0f;
    }

    // For E4M3 only: a quotient that is rounded to zero there may be a little off.
    __device__ __forceinline__ float quick(float x) const {
        const float lifted = __fmul_rn(x, lift);
        const float quotient = __fmul_rn(lifted, reciprocal);
        const float remainder = __fmaf_rn(quotient, scale, -lifted);
        return __fmaf_rn(-remainder, reciprocal, quotient);
    }
    __device__ __forceinline__ float exact(float x) const { return __fdiv_rn(x, given); }
};

__device__ __forceinline__ u32 e4m3x4_from_f32(float a, float b, float c, float d) {
    return e4m3x2_from_f32(a, b) | u32(e4m3x2_from_f32(c, d)) << 16;
}

template <class T>
__device__ __forceinline__ QuantisedRow<T> quantise(const RawRow<T>& raw) {
    // Magnitudes order as their bits do, so one REDUX reduces a warp where five shuffles would.
    const float content_max = __uint_as_float(warp_max_u32(__float_as_uint(T::abs_max(raw.content))));
    const float rope_max = __uint_as_float(warp_max_u32(__float_as_uint(T::abs_max(raw.rope))));

    float scale = __fdiv_rn(content_max, 448.0f);
    if (scale == 0.0f) scale = 1.0f;
    // Keeps the scaled rope below 2^60, far from overflow.
    scale = fmaxf(scale, __fmul_rn(rope_max, 0x1p-60f));

    QuantisedRow<T> row;
    const ScaleDivision by_scale(scale);
    row.scale = scale;
    row.rope = bf16x2_from_f32(by_scale.exact(T::low(raw.rope)), by_scale.exact(T::high(raw.rope)));
#pragma unroll
    for (u32 i = 0; i < RawRow<T>::VECTORS; i++) {
        float x[T::VALUES];
        T::unpack(raw.content[i], x);
#pragma unroll
        for (u32 j = 0; j < T::VALUES; j++) x[j] = by_scale.quick(x[j]);
#pragma unroll
        for (u32 j = 0; j < QuantisedRow<T>::WORDS; j++) {
            row.content[i][j] = e4m3x4_from_f32(x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]);
        }
    }
    return row;
}

// Stores word(s) of one vector.
__device__ __forceinline__ void store_words(u8* p, const u32 (&words)[1]) {
    store_u32(p, words[0]);
}
__device__ __forceinline__ void store_words(u8* p, const u32 (&words)[2]) {
    store_u32x2(p, {words[0], words[1]});
}

}  // namespace snapmla
