// Half a warp quantises a row, for the kernels that do nothing else: bit for bit as quantise.cuh, in half the instructions.
#pragma once

#include "quantise.cuh"
#include "row.cuh"

namespace snapmla {

// Lanes of a row: what is done once a row, not once a number, is done for two rows at a time.
constexpr u32 ROW_LANES = WARP / 2;

// The row of this half of the warp, and the lane's number within the half.
struct HalfWarp {
    u32 lane;

    __device__ __forceinline__ explicit HalfWarp(i64 num_rows)
        : lane(lane_index() % ROW_LANES), first(2 * row_index()), index(first + lane_index() / ROW_LANES), end(num_rows) {}

    // Whether neither half has a row.
    __device__ __forceinline__ bool past_warp() const { return first >= end; }
    // Whether this half has none. Its lanes take part in what the warp does together, with the other half's row.
    __device__ __forceinline__ bool past() const { return index >= end; }
    __device__ __forceinline__ i64 row() const { return past() ? first : index; }

private:
    i64 first;
    i64 index;
    i64 end;
};

// A lane's share of a row as loaded: vector i holds dims (16 i + lane) * VALUES onwards, so that each load takes an
// unbroken 256 bytes of a row; pair i holds rope dims 2 (16 i + lane) and the next.
template <class T>
struct HalfRow {
    static constexpr u32 VECTORS = CONTENT_DIM / (ROW_LANES * T::VALUES);
    static constexpr u32 PAIRS = ROPE_DIM / (ROW_LANES * 2);

    typename T::Vector content[VECTORS];
    typename T::Pair rope[PAIRS];

    static __device__ __forceinline__ u32 dim(u32 vector, u32 lane) { return (ROW_LANES * vector + lane) * T::VALUES; }
    static __device__ __forceinline__ u32 rope_dim(u32 pair, u32 lane) { return 2 * (ROW_LANES * pair + lane); }

    // `vector`: content is 16-byte aligned, and rope aligned to two elements.
    __device__ __forceinline__ void load(const u8* content_row, const u8* rope_row, bool vector, u32 lane) {
        if (vector) {
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) content[i] = load_u32x4(content_row + dim(i, lane) * T::BYTES);
#pragma unroll
            for (u32 i = 0; i < PAIRS; i++) rope[i] = T::load_pair(rope_row + rope_dim(i, lane) * T::BYTES);
        } else {
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) content[i] = T::load_elements(content_row + dim(i, lane) * T::BYTES);
#pragma unroll
            for (u32 i = 0; i < PAIRS; i++) rope[i] = T::load_pair_elements(rope_row + rope_dim(i, lane) * T::BYTES);
        }
    }
};

// A lane's share of the same row quantised: word j of vector i holds dims 4 j onwards of the vector's.
template <class T>
struct QuantisedHalfRow {
    static constexpr u32 WORDS = T::VALUES / 4;

    u32 content[HalfRow<T>::VECTORS][WORDS];
    u32 rope[HalfRow<T>::PAIRS];
    float scale;
};

// Division of a 16-bit floating-point number by a row's scale: 1 / s in two parts, the second not negative so that -0 / s
// stays -0. Correctly rounded for every such number and every scale that a row of them can have, as src/cuda/q_quant.rs
// tries, while nothing underflows on the way.
class ShortDivision {
    float high;
    float low;

public:
    __device__ __forceinline__ explicit ShortDivision(float s) {
        const bool finite = s < __uint_as_float(0x7f800000u);
        high = finite ? __frcp_rn(s) : 0.0f;
        float rest = __fmaf_rn(-s, high, 1.0f);
        if (rest < 0.0f) {
            high = __uint_as_float(__float_as_uint(high) - 1);
            rest = __fmaf_rn(-s, high, 1.0f);
        }
        low = finite ? __fmul_rn(rest, high) : 0.0f;
    }
    __device__ __forceinline__ float operator()(float x) const { return __fmaf_rn(x, high, __fmul_rn(x, low)); }
};

// Division of any number, for E4M3 only.
class LongDivision {
    ScaleDivision by_scale;

public:
    __device__ __forceinline__ explicit LongDivision(float s) : by_scale(s) {}
    __device__ __forceinline__ float operator()(float x) const { return by_scale.quick(x); }
};

// How each element type is divided by a row's scale, for E4M3.
template <class T>
struct DivisionOf {
    using Type = ShortDivision;
};
template <>
struct DivisionOf<F32> {
    using Type = LongDivision;
};

template <class T>
__device__ __forceinline__ QuantisedHalfRow<T> quantise(HalfRow<T> raw) {
    const Maxima largest = T::template maxima<ROW_LANES>(raw.content, raw.rope);

    float scale = __fdiv_rn(largest.content, 448.0f);
    if (scale == 0.0f) scale = 1.0f;
    // Keeps the scaled rope below 2^60, far from overflow.
    scale = fmaxf(scale, __fmul_rn(largest.rope, 0x1p-60f));

    QuantisedHalfRow<T> row;
    row.scale = scale;
    const bool far = T::FAR_SCALES && (scale < 0x1p-60f || scale > 0x1p60f);
    // A power of two brings a far-off scale near 1, and the numbers with it.
    if (far) {
        const float lift = scale < 1.0f ? 0x1p100f : 0x1p-100f;
#pragma unroll
        for (u32 i = 0; i < HalfRow<T>::VECTORS; i++) T::multiply(raw.content[i], lift);
        scale *= lift;
    }
    const typename DivisionOf<T>::Type quotient(scale);
    if (far || T::any_tiny(raw.rope)) {
#pragma unroll
        for (u32 i = 0; i < HalfRow<T>::PAIRS; i++) {
            row.rope[i] = bf16x2_from_f32(__fdiv_rn(T::low(raw.rope[i]), row.scale),
                                          __fdiv_rn(T::high(raw.rope[i]), row.scale));
        }
    } else {
#pragma unroll
        for (u32 i = 0; i < HalfRow<T>::PAIRS; i++) {
            row.rope[i] = bf16x2_from_f32(quotient(T::low(raw.rope[i])), quotient(T::high(raw.rope[i])));
        }
    }
#pragma unroll
    for (u32 i = 0; i < HalfRow<T>::VECTORS; i++) {
        float x[T::VALUES];
        T::unpack(raw.content[i], x);
#pragma unroll
        for (u32 j = 0; j < T::VALUES; j++) x[j] = quotient(x[j]);
#pragma unroll
        for (u32 j = 0; j < QuantisedHalfRow<T>::WORDS; j++) {
            row.content[i][j] = e4m3x4_from_f32(x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]);
        }
    }
    return row;
}

}  // namespace snapmla
