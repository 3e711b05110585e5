// A tile's scores for blocks of 16 or 32 rows: S^T = K Q^T, tokens along the accumulators' M, so that the product is no
// larger than the rows there are. A row's 64 numbers are spread over the warpgroup: its warps vote on whether the row's
// largest fused probability is in the window, and look for its maximum only when it is not.
#pragma once

#include "decode/barriers.cuh"
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

template <int ROWS>
struct NarrowTile {
    using Shared = SharedMemory<ROWS>;
    static constexpr int BLOCKS = ROWS / 8;
    static constexpr int OWN_ROWS = 2 * BLOCKS;
    // [token 0 or 1][row 8c + 2j or the next] at 4c.
    using Logits = float[4 * BLOCKS];

    // Of the rows 8c + 2j + b of lane j of a quad, at 2c + b.
    struct State {
        float sum[OWN_ROWS];  // of the thread's un-quantised probabilities, relative to `reference`
        float reference[OWN_ROWS];

        __device__ __forceinline__ State() {
#pragma unroll
            for (int r = 0; r < OWN_ROWS; ++r) sum[r] = 0.f, reference[r] = NO_REFERENCE;
        }
    };

    struct References {
        float now[OWN_ROWS];     // log2 of what P is relative to
        float factor[OWN_ROWS];  // what a move puts on O
        u32 moved;               // a byte for each 16 rows: some of them moved
    };

    // Lane 4g + j of warp w has tokens 16w + g and 8 more.
    static __device__ __forceinline__ u32 first_token() { return warp_of_group() * 16 + lane_of() / 4; }
    static __device__ __forceinline__ u32 own_row(int r) { return r / 2 * 8 + 2 * (lane_of() & 3) + r % 2; }

    // E4M3 for the four blocks of content, then BF16 for rope, the fifth, into the same accumulators.
    static __device__ __forceinline__ void issue_logits(Logits& s, const Shared& smem, u32 stage) {
        const u32 q = descriptor_word(shared_address(smem.queries));
        const u32 k = descriptor_word(shared_address(smem.stages) + stage * sizeof(Stage));
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 20; ++step) {
            const u64 a = descriptor_128b(k + ((step / 4 * BLOCK_BYTES + step % 4 * 32) >> 4));
            const u64 b = descriptor_128b(q + ((step / 4 * Shared::QUERY_BLOCK_BYTES + step % 4 * 32) >> 4));
            if (step < 16) {
                wgmma_e4m3_ss<ROWS>(s, a, b, step > 0);
            } else {
                wgmma_bf16_ss<ROWS>(s, a, b, true);
            }
        }
        wgmma_commit_group();
    }

    // A scale that is no number spoils the rows that attend to its token.
    static __device__ __forceinline__ void spoil(const Shared& smem, u32 stage, Logits& s) {
#pragma unroll
        for (int token = 0; token < 2; ++token) {
            if (fabsf(smem.stages[stage].scale[first_token() + 8 * token]) < INFINITY_F32) continue;
#pragma unroll
            for (int r = 0; r < OWN_ROWS; ++r) s[place(token, r)] = INFINITY_F32 - INFINITY_F32;
        }
    }

    static __device__ __forceinline__ void mask(const DecodeArgs& args, const Attended& attended, Logits& s) {
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            const int limit = attended.by(row_at(args, block_row_group(args) * ROWS + own_row(r)).token) - int(first_token());
            if (0 >= limit) s[place(0, r)] = args.masked;
            if (8 >= limit) s[place(1, r)] = args.masked;
        }
    }

    // Logits to fused probabilities. `careful` tiles get their references from the logits, before any exp2.
    static __device__ __forceinline__ References softmax(Shared& smem, const int group, u32 stage, bool careful, Logits& s, State& state) {
        const float scale[2] = {smem.stages[stage].scale[first_token()], smem.stages[stage].scale[first_token() + 8]};
        float factor[OWN_ROWS], sum[OWN_ROWS];
        Logits logits;
        References references;
        references.moved = 0;
#pragma unroll
        for (int c = 0; c < BLOCKS; ++c) {
            load_pair(smem.q_factor, c, factor);
            load_pair(smem.reference, c, references.now);
        }
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            references.factor[r] = 1.f;
            logits[place(0, r)] = s[place(0, r)] * scale[0] * factor[r];
            logits[place(1, r)] = s[place(1, r)] * scale[1] * factor[r];
        }
        bool settled = false;
        if (!careful) {
            exponentiate(logits, scale, references.now, s, sum);
            settled = in_window(smem, group, s);
        }
        if (!settled) {
            anchor(smem, group, logits, scale, references);
            exponentiate(logits, scale, references.now, s, sum);
        }
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            if (state.reference[r] != references.now[r]) {
                state.sum[r] *= exp2_approx(state.reference[r] - references.now[r]);
                state.reference[r] = references.now[r];
            }
            state.sum[r] += sum[r];
        }
        return references;
    }

    // P and the factors on O for the value warpgroups.
    static __device__ __forceinline__ void publish(Shared& smem, const int group, const Logits& s, const References& references) {
        if (warp_of_group() == 0) {
            if (references.moved != 0 && lane_of() < 4) {
#pragma unroll
                for (int r = 0; r < OWN_ROWS; ++r) smem.rescale[group][own_row(r)] = references.factor[r];
            }
            if (lane_of() == 0) smem.rescaled[group] = references.moved;
        }
        store_p(shared_address(smem.p[group]), s);
    }

    // The segment's sums relative to its final references. The warpgroup.
    static __device__ __forceinline__ void store_sums(Shared& smem, const int group, const State& state) {
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            float sum = state.sum[r];
#pragma unroll
            for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
            const float factor = exp2_approx(state.reference[r] - smem.reference[own_row(r)]);
            if (lane_of() < 4) smem.by_warp[group][warp_of_group()][own_row(r)] = sum == 0.f ? 0.f : sum * factor;
        }
        bar_sync(SCORE_GROUP + group, WARPGROUP);
        const u32 row = thread_of() % WARPGROUP;
        if (row < ROWS) {
            const auto& parts = smem.by_warp[group];
            smem.sum[group][row] = (parts[0][row] + parts[1][row]) + (parts[2][row] + parts[3][row]);
        }
    }

private:
    static constexpr u32 ALL_ROWS = ROWS == 32 ? ~0u : (1u << (ROWS % 32)) - 1;

    static __device__ __forceinline__ constexpr int place(int token, int r) { return r / 2 * 4 + 2 * token + r % 2; }

    static __device__ __forceinline__ void load_pair(const float (&from)[ROWS], int c, float (&to)[OWN_ROWS]) {
        const float2 pair = load_shared_f32x2(shared_address(from) + (lane_of() & 3) * 8 + c * 32);
        to[2 * c] = pair.x;
        to[2 * c + 1] = pair.y;
    }

    // fused = exp2(logit - reference) * scale; `sum` is of the thread's un-fused ones.
    static __device__ __forceinline__ void exponentiate(const Logits& logits, const float (&scale)[2], const float (&reference)[OWN_ROWS],
                                                        Logits& fused, float (&sum)[OWN_ROWS]) {
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            const float x = exp2_approx(logits[place(0, r)] - reference[r]), y = exp2_approx(logits[place(1, r)] - reference[r]);
            sum[r] = x + y;
            fused[place(0, r)] = x * scale[0];
            fused[place(1, r)] = y * scale[1];
        }
    }

    // Whether every row's largest fused probability is in the window: some number is at its low end or above, and none
    // above its high end. The warpgroup.
    static __device__ __forceinline__ bool in_window(Shared& smem, const int group, const Logits& fused) {
        u32 reached = 0;
        bool above = false;
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            const float larger = fmaxf(fused[place(0, r)], fused[place(1, r)]);
            if (larger >= WINDOW_LOW) reached |= 1u << (r / 2 * 8 + r % 2);
            above |= larger > WINDOW_HIGH;
        }
        reached = __reduce_or_sync(~0u, reached << 2 * (lane_of() & 3));
        above = __any_sync(~0u, above);
        if (lane_of() == 0) {
            smem.reached[group][warp_of_group()] = reached;
            smem.above[group][warp_of_group()] = above;
        }
        bar_sync(SCORE_GROUP + group, WARPGROUP);
        const uint4 rows = *reinterpret_cast<const uint4*>(smem.reached[group]);
        const uint4 warps = *reinterpret_cast<const uint4*>(smem.above[group]);
        return (rows.x | rows.y | rows.z | rows.w) == ALL_ROWS && (warps.x | warps.y | warps.z | warps.w) == 0;
    }

    // New references, from the logits, for the rows that need them. The warpgroup.
    static __device__ __forceinline__ void anchor(Shared& smem, const int group, const Logits& logits, const float (&scale)[2],
                                                  References& references) {
        auto& by_warp = smem.by_warp[group];
        const float log_scale[2] = {log2_approx(scale[0]), log2_approx(scale[1])};
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            float octave = fmaxf(logits[place(0, r)] + log_scale[0], logits[place(1, r)] + log_scale[1]);
#pragma unroll
            for (int step = 4; step < 32; step *= 2) octave = fmaxf(octave, __shfl_xor_sync(~0u, octave, step));
            if (lane_of() < 4) by_warp[warp_of_group()][own_row(r)] = octave;
        }
        bar_sync(SCORE_GROUP + group, WARPGROUP);
        float highest[OWN_ROWS];
#pragma unroll
        for (int r = 0; r < OWN_ROWS; ++r) {
            const u32 row = own_row(r);
            const float octave = fmaxf(fmaxf(by_warp[0][row], by_warp[1][row]), fmaxf(by_warp[2][row], by_warp[3][row]));
            highest[r] = smem.highest[row];
            // A row that attends to nothing in the tile has no maximum.
            if (octave > -INFINITY_F32 && strays(octave - references.now[r])) {
                const float target = fmaxf(octave - ANCHOR_OCTAVE, highest[r] - MAX_DESCENT_OCTAVES);
                references.factor[r] = exp2_approx(references.now[r] - target);
                references.now[r] = target;
                references.moved |= 1u << (r / 4 * 8);
                highest[r] = fmaxf(highest[r], target);
            }
        }
        references.moved = __reduce_or_sync(~0u, references.moved);
        // Everybody has read what one warp now replaces.
        bar_sync(SCORE_GROUP + group, WARPGROUP);
        if (warp_of_group() == 0 && lane_of() < 4) {
#pragma unroll
            for (int r = 0; r < OWN_ROWS; ++r) {
                smem.reference[own_row(r)] = references.now[r];
                smem.highest[own_row(r)] = highest[r];
            }
        }
    }

    // P as E4M3 for the value warpgroups: a warp's 16 tokens are a chunk of every row, in the order g, g + 8, which is the
    // order of value_fragment.
    static __device__ __forceinline__ void store_p(u32 buffer, const Logits& f) {
        const u32 row = lane_of() % ROWS, address = buffer + row * 64 + ((warp_of_group() ^ ((row >> 1) & 3)) << 4);
        u32 word[BLOCKS];
#pragma unroll
        for (int c = 0; c < BLOCKS; ++c) word[c] = e4m3x4_from_f32(f[4 * c], f[4 * c + 2], f[4 * c + 1], f[4 * c + 3]);
        stmatrix_trans(address, word);
    }
};

}  // namespace snapmla
