// cuda/ptx/convert.cuh for the host: by search and by arithmetic on values, not on bits, to have nothing in common with
// what it is compared to.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// Rounds to `bits` significant bits, and to no less than 2^lowest, to nearest even. Exact in double.
inline double round_to(double x, int bits, int lowest) {
    int exponent;
    std::frexp(x, &exponent);
    const int step = std::max(exponent - bits, lowest);
    return std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
}

struct E4m3Values {
    double of[256];

    E4m3Values() {
        for (u32 code = 0; code < 128; code++) {
            const int exponent = code >> 3, mantissa = code & 7;
            of[code] = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
            of[code | 128] = -of[code];
        }
        of[127] = of[255] = NAN;
    }
};
inline const E4m3Values E4M3;

inline u8 e4m3_of(float x) {
    if (std::isnan(x)) return 0x7f;
    const double rounded = std::fabs(x) >= 448 ? 448 : round_to(std::fabs(x), 4, -9);
    const auto code = std::lower_bound(E4M3.of, E4M3.of + 127, rounded) - E4M3.of;
    return u8(code | (std::signbit(x) ? 128 : 0));
}

// The 16-bit pattern of a value that has one, in a format with `mantissa` bits below the leading one.
inline u16 pattern16(double rounded, bool negative, int mantissa, int lowest_exponent) {
    const u32 sign = negative ? 0x8000u : 0;
    if (rounded == 0) return u16(sign);
    if (std::isinf(rounded)) return u16(sign | ((1u << (15 - mantissa)) - 1) << mantissa);
    int exponent;
    std::frexp(rounded, &exponent);
    const int biased = std::max(exponent - 1 - lowest_exponent + 1, 0);
    const double unit = std::ldexp(1, std::max(exponent - 1, lowest_exponent) - mantissa);
    const u32 digits = u32(rounded / unit);
    return u16(sign | (u32(biased) << mantissa) | (digits & ((1u << mantissa) - 1)));
}

inline u16 float16(float x, int mantissa, int lowest_exponent, double largest) {
    if (std::isnan(x)) return 0x7fff;
    double rounded = std::isinf(x) ? INFINITY : round_to(std::fabs(double(x)), mantissa + 1, lowest_exponent - mantissa);
    if (rounded > largest) rounded = INFINITY;
    return pattern16(rounded, std::signbit(x), mantissa, lowest_exponent);
}
inline u16 bf16_of(float x) { return float16(x, 7, -126, 0x1.fep127); }
inline u16 f16_of(float x) { return float16(x, 10, -14, 65504); }

inline u16 e4m3x2_from_f32(float lo, float hi) { return u16(e4m3_of(lo) | e4m3_of(hi) << 8); }
inline u32 bf16x2_from_f32(float lo, float hi) { return bf16_of(lo) | u32(bf16_of(hi)) << 16; }
inline u32 f16x2_from_f32(float lo, float hi) { return f16_of(lo) | u32(f16_of(hi)) << 16; }
inline u32 f16x2_from_e4m3x2(u16 x) {
    return f16x2_from_f32(float(E4M3.of[x & 255]), float(E4M3.of[x >> 8]));
}

inline float f32_from_f16(u16 x) {
    const int exponent = x >> 10 & 31, mantissa = x & 1023;
    double v = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    if (exponent == 31) v = mantissa ? NAN : INFINITY;
    return float(x & 0x8000 ? -v : v);
}

}  // namespace snapmla
