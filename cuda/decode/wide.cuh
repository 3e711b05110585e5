// A tile's scores for blocks of 64 rows: S = Q K^T, rows along the accumulators' M. A quad of lanes has two rows, so a
// row's maximum is two shuffles away, and the tokens' scales are read from shared memory twice.
#pragma once

#include "decode/config.cuh"
#include "decode/mask.cuh"
#include "decode/rows.cuh"
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/matrix.cuh"
#include "ptx/shared.cuh"
#include "ptx/warp.cuh"
#include "ptx/wgmma.cuh"
#include "quantise.cuh"

namespace snapmla {

struct WideTile {
    using Shared = SharedMemory<64>;
    // [row 0 or 1][token 8c + 2j or the next] at 4c.
    using Logits = float[32];

    // What a thread knows of the two rows that it shares with the rest of its quad.
    struct State {
        float sum[2] = {0.f, 0.f};                                // of un-quantised probabilities, relative to `reference`
        float reference[2] = {NO_REFERENCE, NO_REFERENCE};        // log2
    };

    // What a tile's softmax does with the references of the thread's two rows.
    struct References {
        float now[2];     // log2 of what P is relative to
        float factor[2];  // what a move puts on O
        bool moved;       // some row of the warp

        // Moves row `row` so that `octave`, the log2 of its largest fused probability, comes out as ANCHOR_OCTAVE.
        __device__ __forceinline__ void move(Shared& smem, int row, float octave) {
            const u32 r = first_row() + 8 * row;
            const float highest = smem.highest[r];
            const float target = fmaxf(octave - ANCHOR_OCTAVE, highest - MAX_DESCENT_OCTAVES);
            factor[row] *= exp2_approx(now[row] - target);
            now[row] = target;
            // A quad moves its row or does not, as one, and writes one value.
            __syncwarp(0xfu << (lane_of() & ~3u));
            smem.reference[r] = target;
            smem.highest[r] = fmaxf(highest, target);
        }
    };

    // The quad (lanes 4g…4g+3) of warp w has rows 16 w + g and 8 more; lane j of it tokens 8c + 2j and 8c + 2j + 1.
    static __device__ __forceinline__ u32 first_row() { return warp_of_group() * 16 + lane_of() / 4; }
    static __device__ __forceinline__ u32 scales_of(const Shared& smem, u32 stage) {
        return shared_address(smem.stages[stage].scale) + (lane_of() & 3) * 8;
    }

    // E4M3 for the four blocks of content, then BF16 for rope, the fifth, into the same accumulators.
    static __device__ __forceinline__ void issue_logits(Logits& s, const Shared& smem, u32 stage) {
        const u32 q = descriptor_word(shared_address(smem.queries));
        const u32 k = descriptor_word(shared_address(smem.stages) + stage * sizeof(Stage));
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 20; ++step) {
            const u64 a = descriptor_128b(q + ((step / 4 * Shared::QUERY_BLOCK_BYTES + step % 4 * 32) >> 4));
            const u64 b = descriptor_128b(k + ((step / 4 * BLOCK_BYTES + step % 4 * 32) >> 4));
            if (step < 16) {
                wgmma_e4m3_ss<64>(s, a, b, step > 0);
            } else {
                wgmma_bf16_ss<64>(s, a, b, true);
            }
        }
        wgmma_commit_group();
    }

    // A scale that is no number spoils the rows that attend to its token.
    static __device__ __forceinline__ void spoil(const Shared& smem, u32 stage, Logits& s) {
        const u32 scales = scales_of(smem, stage);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const float2 scale = load_shared_f32x2(scales + c * 32);
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                if (!(fabsf(scale.x) < INFINITY_F32)) s[4 * c + 2 * row] = INFINITY_F32 - INFINITY_F32;
                if (!(fabsf(scale.y) < INFINITY_F32)) s[4 * c + 2 * row + 1] = INFINITY_F32 - INFINITY_F32;
            }
        }
    }

    static __device__ __forceinline__ void mask(const DecodeArgs& args, const Attended& attended, Logits& s) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int limit = attended.by(row_at(args, block_row_group(args) * Shared::ROWS + first_row() + 8 * row).token) -
                              2 * int(lane_of() & 3);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
                if (8 * c >= limit) s[4 * c + 2 * row] = args.masked;
                if (8 * c + 1 >= limit) s[4 * c + 2 * row + 1] = args.masked;
            }
        }
    }

    // Logits to fused probabilities. `careful` tiles, which are a segment's first and those that are masked, get their
    // references from the logits, before any exp2.
    static __device__ __forceinline__ References softmax(Shared& smem, const int, u32 stage, bool careful, Logits& s, State& state) {
        const u32 row0 = first_row(), scales = scales_of(smem, stage);
        const float factor[2] = {smem.q_factor[row0], smem.q_factor[row0 + 8]};
        References references{{smem.reference[row0], smem.reference[row0 + 8]}, {1.f, 1.f}, false};
        const bool overflows = scale_logits(s, scales, factor, references.now);
        if (careful || __any_sync(~0u, overflows)) anchor(smem, s, scales, factor, references);
        float sum[2], largest[2];
        exponentiate(s, scales, factor, references.now, sum, largest);
        if (__any_sync(~0u, fmaxf(largest[0], largest[1]) > WINDOW_HIGH || fminf(largest[0], largest[1]) < WINDOW_LOW))
            return_to_window(smem, s, sum, largest, references);
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            state.sum[row] = state.sum[row] * exp2_approx(state.reference[row] - references.now[row]) + sum[row];
            state.reference[row] = references.now[row];
        }
        return references;
    }

    // P and the factors on O for the value warpgroups.
    static __device__ __forceinline__ void publish(Shared& smem, const int group, const Logits& s, const References& references) {
        smem.rescale[group][first_row()] = references.factor[0];
        smem.rescale[group][first_row() + 8] = references.factor[1];
        if (lane_of() == 0) reinterpret_cast<volatile u8*>(&smem.rescaled[group])[warp_of_group()] = references.moved;
        store_p(shared_address(smem.p[group]), s);
    }

    // The segment's sums relative to its final references.
    static __device__ __forceinline__ void store_sums(Shared& smem, const int group, const State& state) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const u32 r = first_row() + 8 * row;
            float sum = state.sum[row];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            const float factor = exp2_approx(state.reference[row] - smem.reference[r]);
            if ((lane_of() & 3) == 0) smem.sum[group][r] = sum == 0.f ? 0.f : sum * factor;
        }
    }

private:
    // Largest of a row over its quad.
    static __device__ __forceinline__ float quad_max(float x) {
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
        return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    }

    // s times the tokens' scales. Returns whether exp2 of some logit of the thread's rows could overflow.
    static __device__ __forceinline__ bool scale_logits(Logits& s, u32 scales, const float (&factor)[2], const float (&reference)[2]) {
        // Non-negative floats order as integers do, and negative ones are below them all.
        int most[2] = {0, 0};
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const float2 scale = load_shared_f32x2(scales + c * 32);
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float& x = s[4 * c + 2 * row];
                float& y = s[4 * c + 2 * row + 1];
                x *= scale.x;
                y *= scale.y;
                most[row] = __vimax3_s32(most[row], __float_as_int(x), __float_as_int(y));
            }
        }
        return __int_as_float(most[0]) * factor[0] > reference[0] + OVERFLOW_OCTAVES ||
               __int_as_float(most[1]) * factor[1] > reference[1] + OVERFLOW_OCTAVES;
    }

    // References from the logits themselves: for tiles whose rows have no reference yet, or one so far off that exp2
    // would overflow.
    static __device__ __forceinline__ void anchor(Shared& smem, const Logits& s, u32 scales, const float (&factor)[2],
                                                  References& references) {
        float octave[2] = {-INFINITY_F32, -INFINITY_F32};
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const float2 scale = load_shared_f32x2(scales + c * 32);
            const float log_x = log2_approx(scale.x), log_y = log2_approx(scale.y);
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                octave[row] = fmaxf(octave[row], fmaf(s[4 * c + 2 * row], factor[row], log_x));
                octave[row] = fmaxf(octave[row], fmaf(s[4 * c + 2 * row + 1], factor[row], log_y));
            }
        }
        references.moved = true;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            octave[row] = quad_max(octave[row]);
            // A row that attends to nothing in the tile has no maximum.
            if (octave[row] > -INFINITY_F32 && strays(octave[row] - references.now[row])) references.move(smem, row, octave[row]);
        }
        __syncwarp();
    }

    // Scaled logits become the fused probabilities, exp2(s * factor - reference) * scale. `sum` is of the thread's
    // un-fused ones, `largest` of the quad's fused ones.
    static __device__ __forceinline__ void exponentiate(Logits& s, u32 scales, const float (&factor)[2],
                                                        const float (&reference)[2], float (&sum)[2], float (&largest)[2]) {
        sum[0] = sum[1] = largest[0] = largest[1] = 0.f;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const float2 scale = load_shared_f32x2(scales + c * 32);
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float& x = s[4 * c + 2 * row];
                float& y = s[4 * c + 2 * row + 1];
                x = exp2_approx(fmaf(x, factor[row], -reference[row]));
                y = exp2_approx(fmaf(y, factor[row], -reference[row]));
                sum[row] += x + y;
                x *= scale.x;
                y *= scale.y;
                largest[row] = fmaxf(largest[row], fmaxf(x, y));
            }
        }
        largest[0] = quad_max(largest[0]);
        largest[1] = quad_max(largest[1]);
    }

    // Brings rows whose largest fused probability has left the window back into it. They are floats still, so nothing is
    // lost; a block too far below the highest reference stays where it is, and vanishes.
    static __device__ __forceinline__ void return_to_window(Shared& smem, Logits& s, float (&sum)[2], const float (&largest)[2],
                                                            References& references) {
        references.moved = true;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float before = references.now[row];
            if (largest[row] > WINDOW_HIGH || (largest[row] < WINDOW_LOW && largest[row] > 0.f))
                references.move(smem, row, before + log2_approx(largest[row]));
            const float factor = exp2_approx(before - references.now[row]);
            sum[row] *= factor;
#pragma unroll
            for (int c = 0; c < 8; ++c) {
                s[4 * c + 2 * row] *= factor;
                s[4 * c + 2 * row + 1] *= factor;
            }
        }
        __syncwarp();
    }

    // P as E4M3 for the value warpgroups. stmatrix: lanes 0-15 address rows 0-15 at tokens 0-15 of a 32-token half, lanes
    // 16-31 at its tokens 16-31.
    static __device__ __forceinline__ void store_p(u32 buffer, const Logits& f) {
        const u32 lane = lane_of(), row = warp_of_group() * 16 + (lane & 15);
        const u32 address = buffer + row * 64 + (((lane >> 4) ^ ((row >> 1) & 3)) << 4);
        u32 word[4][2];
#pragma unroll
        for (int group = 0; group < 4; ++group) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float* x = f + 8 * group + 2 * r;
                word[group][r] = e4m3x4_from_f32(x[0], x[1], x[4], x[5]);
            }
        }
        stmatrix_x4(address, word[0][0], word[0][1], word[1][0], word[1][1]);
        stmatrix_x4(address ^ 32, word[2][0], word[2][1], word[3][0], word[3][1]);
    }
};

}  // namespace snapmla
