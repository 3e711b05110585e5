// Tiles that some row does not attend to whole.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "ptx/barrier.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

constexpr float INFINITY_F32 = __builtin_bit_cast(float, 0x7f800000u);

// Whether any of four E4M3 bytes is a NaN: all seven bits below the sign set.
__device__ __forceinline__ bool has_e4m3_nan(u32 bytes) { return __vcmpeq4(bytes & 0x7f7f7f7fu, 0x7f7f7f7fu) != 0; }

// `valid` tokens of the tile exist, and every row attends to `all_attend` of them. Makes the others harmless: V rows zero
// (0 * NaN is NaN), scales 1. A warpgroup.
template <class Shared>
__device__ __forceinline__ void mask_scales_and_values(Shared& smem, u32 stage, int valid, int all_attend) {
    const int t = thread_of() % WARPGROUP;
    u8* content = smem.stages[stage].keys;
#pragma unroll 1
    for (int x = t; x < (TILE_TOKENS - valid) * 32; x += WARPGROUP) {
        const int token = valid + x / 32, chunk = x % 32;
        *reinterpret_cast<uint4*>(content + chunk / 8 * BLOCK_BYTES + token * ROW_BYTES + chunk % 8 * 16) = make_uint4(0, 0, 0, 0);
    }
    if (t < TILE_TOKENS - valid) smem.stages[stage].scale[valid + t] = 1.f;
    // Tokens that only some rows attend to: a NaN there must not reach the others through 0 * NaN. The rows that do
    // attend are NaN already, by their logits.
    const int warp = t / 32, lane = t % 32;
#pragma unroll 1
    for (int token = max(all_attend, 0) + warp; token < valid; token += WARPGROUP / 32) {
        uint4* chunk = reinterpret_cast<uint4*>(content + lane / 8 * BLOCK_BYTES + token * ROW_BYTES + lane % 8 * 16);
        const uint4 bytes = *chunk;
        const bool nan = has_e4m3_nan(bytes.x) || has_e4m3_nan(bytes.y) || has_e4m3_nan(bytes.z) ||
                         has_e4m3_nan(bytes.w);
        float* scale = &smem.stages[stage].scale[token];
        const bool bad_scale = !(fabsf(*scale) < INFINITY_F32);
        const bool bad = __any_sync(~0u, nan) || bad_scale;
        __syncwarp();
        if (bad) {
            *chunk = make_uint4(0, 0, 0, 0);
            if (lane == 0) *scale = 1.f;
        }
    }
}

// The tile `within` tiles into a segment: which of its tokens a row attends to.
struct Attended {
    int tokens;  // that there are
    int by_all;  // that every row attends to; the next query token attends to one more, and so on
    bool causal;

    __device__ __forceinline__ int by(u32 query_token) const { return causal ? by_all + int(query_token) : tokens; }
};

__device__ __forceinline__ Attended attended_of_tile(const DecodeArgs& args, const Segment& segment, u32 within) {
    const int length = segment.length, q_len = query_span(args, segment.sequence).count;
    const int first_token = (segment.first_tile + within) * TILE_TOKENS;
    return {length - first_token, (args.causal ? length - q_len + 1 : length) - first_token, args.causal != 0};
}

// The first tile of a segment, numbered within it, that some row does not attend to whole.
__device__ __forceinline__ u32 first_masked(const DecodeArgs& args, const Segment& segment) {
    const int length = segment.length;
    const int all_attend = args.causal ? max(length - int(query_span(args, segment.sequence).count) + 1, 0) : length;
    return max(all_attend / TILE_TOKENS - int(segment.first_tile), 0);
}

}  // namespace snapmla
