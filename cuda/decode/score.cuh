// The score warpgroups: logits, softmax, and P for the value warpgroups. They take alternate tiles.
#pragma once

#include "decode/config.cuh"
#include "decode/pages.cuh"
#include "decode/plan.cuh"
#include "decode/queries.cuh"
#include "decode/rows.cuh"
#include "ptx/barrier.cuh"
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/matrix.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace snapmla {

// S[64 rows][64 tokens] = Q K^T: E4M3 for the four blocks of content, then BF16 for rope, the fifth, into the same
// accumulators.
template <class Shared>
__device__ __forceinline__ void issue_logits(float (&s)[32], const Shared& smem, u32 stage) {
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

constexpr float INFINITY_F32 = __builtin_bit_cast(float, 0x7f800000u);

// Whether any of four E4M3 bytes is a NaN: all seven bits below the sign set.
__device__ __forceinline__ bool has_e4m3_nan(u32 bytes) { return __vcmpeq4(bytes & 0x7f7f7f7fu, 0x7f7f7f7fu) != 0; }

// A tile that reaches past what some row attends to: `valid` tokens of it exist, and row r of the thread attends to
// `limit[r]` of them. Masks the logits and makes what lies past the end harmless: V rows zero (0 * NaN is NaN), scales 1.
template <class Shared>
__device__ __forceinline__ void mask_scales_and_values(Shared& smem, u32 stage, int valid, int all_attend) {
    const int t = threadIdx.x % WARPGROUP;
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

// What a thread knows of the two rows that it shares with the rest of its quad.
struct RowState {
    float sum[2];        // of un-quantised probabilities, relative to `reference`
    float reference[2];  // log2
};

// Which of its rows' numbers a thread has: read anew where needed, a register less in the loop each.
__device__ __forceinline__ u32 lane_of() {
    u32 lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ __forceinline__ u32 warp_of_group() {
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread / WARP % 4;
}

// The quad (lanes 4g…4g+3) of warp w has rows 16 w + g and 8 more; lane j of it tokens 8c + 2j and 8c + 2j + 1.
__device__ __forceinline__ u32 first_row_of_thread() { return warp_of_group() * 16 + lane_of() / 4; }

// Largest of a row over its quad.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

// What a tile's softmax does with the references of the thread's two rows.
struct References {
    float now[2];     // log2 of what P is relative to
    float factor[2];  // what a move puts on O
    bool moved;       // some row of the warp

    // Moves row `row` so that `octave`, the log2 of its largest fused probability, comes out as ANCHOR_OCTAVE.
    template <class Shared>
    __device__ __forceinline__ void move(Shared& smem, int row, float octave) {
        const u32 r = first_row_of_thread() + 8 * row;
        const float highest = smem.highest[r];
        const float target = fmaxf(octave - ANCHOR_OCTAVE, highest - MAX_DESCENT_OCTAVES);
        factor[row] *= exp2_approx(now[row] - target);
        now[row] = target;
        // The quad writes one value: its lanes have read, in step, what it replaces.
        smem.reference[r] = target;
        smem.highest[r] = fmaxf(highest, target);
    }
};

// s times the tokens' scales. Returns whether exp2 of some logit of the thread's rows could overflow.
__device__ __forceinline__ bool scale_logits(float (&s)[32], u32 scales, const float (&factor)[2], const float (&reference)[2]) {
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

// References from the logits themselves: for tiles whose rows have no reference yet, or one so far off that exp2 would
// overflow.
template <class Shared>
__device__ __forceinline__ void anchor(Shared& smem, const float (&s)[32], u32 scales, const float (&factor)[2],
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
        const float above = octave[row] - references.now[row];
        // A row that attends to nothing in the tile has no maximum.
        if (octave[row] > -INFINITY_F32 && (above > 8.f || above < 1.f)) references.move(smem, row, octave[row]);
    }
    __syncwarp();
}

// Scaled logits become the fused probabilities, exp2(s * factor - reference) * scale. `sum` is of the thread's un-fused
// ones, `largest` of the quad's fused ones.
__device__ __forceinline__ void exponentiate(float (&s)[32], u32 scales, const float (&factor)[2],
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
template <class Shared>
__device__ __forceinline__ void return_to_window(Shared& smem, float (&s)[32], float (&sum)[2],
                                                 const float (&largest)[2], References& references) {
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
__device__ __forceinline__ void store_p(u32 buffer, const float (&f)[32]) {
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

// Masks what the thread's two rows do not attend to in the tile `within` tiles into the segment.
template <class Shared>
__device__ __forceinline__ void mask_tile(const DecodeArgs& args, Shared& smem, const int group, u32 number, u32 within,
                                          u32 stage, float (&s)[32]) {
    const Segment& segment = smem.segments[number % SEGMENT_RING];
    const int length = segment.length, q_len = query_span(args, segment.sequence).count;
    const int first_token = (segment.first_tile + within) * TILE_TOKENS;
    const int all_attend = args.causal ? length - q_len + 1 : length;
    // A scale that is no number spoils the rows that attend to its token, and is then put out of the others' way.
    const u32 scales = shared_address(smem.stages[stage].scale) + (lane_of() & 3) * 8;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        const float2 scale = load_shared_f32x2(scales + c * 32);
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (!(fabsf(scale.x) < INFINITY_F32)) s[4 * c + 2 * row] = INFINITY_F32 - INFINITY_F32;
            if (!(fabsf(scale.y) < INFINITY_F32)) s[4 * c + 2 * row + 1] = INFINITY_F32 - INFINITY_F32;
        }
    }
    bar_sync(SCORE_GROUP + group, WARPGROUP);
    mask_scales_and_values(smem, stage, min(length - first_token, TILE_TOKENS), all_attend - first_token);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int token = row_at(args, block_row_group(args) * Shared::ROWS + first_row_of_thread() + 8 * row).token;
        const int limit = (args.causal ? all_attend + token : length) - first_token - 2 * int(lane_of() & 3);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            if (8 * c >= limit) s[4 * c + 2 * row] = args.masked;
            if (8 * c + 1 >= limit) s[4 * c + 2 * row + 1] = args.masked;
        }
    }
    bar_sync(SCORE_GROUP + group, WARPGROUP);
}

// The first tile of a segment, numbered within it, that some row does not attend to whole.
__device__ __forceinline__ u32 first_masked(const DecodeArgs& args, const Segment& segment) {
    const int length = segment.length;
    const int all_attend = args.causal ? max(length - int(query_span(args, segment.sequence).count) + 1, 0) : length;
    return max(all_attend / TILE_TOKENS - int(segment.first_tile), 0);
}

// Before a segment: its queries into shared memory, more segments planned. The first one's queries are there already.
template <class Shared>
__device__ __forceinline__ void begin_segment(const DecodeArgs& args, Shared& smem, const int group, u32 number) {
    if (number > 0) {
        // Segment `number - 1` may still be read by the value warpgroups.
        if (warp_of_group() == 3 && group == 1) extend_segments(args, smem, number - 1);
        load_queries<1>(args, smem, smem.segments[number % SEGMENT_RING], block_row_group(args) * Shared::ROWS,
                        threadIdx.x / WARP, SCORE_THREADS / WARP);
        bar_sync(STATS_FREE, SCORE_THREADS + VALUE_THREADS);
    }
    if (threadIdx.x < Shared::ROWS) smem.reference[threadIdx.x] = smem.highest[threadIdx.x] = NO_REFERENCE;
    fence_proxy_async();
    bar_sync(SCORE_BOTH, SCORE_THREADS);
}

// After a segment: every barrier even again, and sums relative to the final references for the value warpgroups.
template <class Shared>
__device__ __forceinline__ void end_segment(Shared& smem, const int group, u32 number, u32 begin, u32 end, const RowState& state) {
    // The last tile's references have no successor to wait for them.
    const int last_group = (end - 1) & 1;
    if (group != last_group) bar_sync(REFERENCE_PASSED + last_group, SCORE_THREADS);
    // The value warpgroups look one tile ahead of each that they take: give them one past the last.
    if (group == last_group || end - begin > 1) bar_sync(P_FREE + group, WARPGROUP + VALUE_THREADS);
    if (group != last_group) bar_arrive(P_READY + group, WARPGROUP + VALUE_THREADS);
    if (threadIdx.x == 0) {
        smem.finished = number;
        smem.finished_tiles = end;
    }
    bar_sync(SCORE_BOTH, SCORE_THREADS);
    if (warp_of_group() * 16 < Shared::ROWS) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const u32 r = first_row_of_thread() + 8 * row;
            float sum = state.sum[row];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            const float factor = exp2_approx(state.reference[row] - smem.reference[r]);
            if ((lane_of() & 3) == 0) smem.sum[group][r] = sum == 0.f ? 0.f : sum * factor;
        }
    }
    bar_arrive(STATS_READY, SCORE_THREADS + VALUE_THREADS);
}

// One tile's logits in `s` to P, which goes to the value warpgroups together with the factors on O. `careful` tiles,
// which are a segment's first and those that are masked, get their references from the logits, before any exp2.
template <class Shared>
__device__ __forceinline__ void softmax_tile(Shared& smem, const int group, u32 stage, bool first, bool first_own,
                                             bool careful, float (&s)[32], RowState& state) {
    // References as the other warpgroup's tile left them.
    if (!first) bar_sync(REFERENCE_PASSED + (group ^ 1), SCORE_THREADS);
    References references{{0.f, 0.f}, {1.f, 1.f}, false};
    const bool has_rows = warp_of_group() * 16 < Shared::ROWS;
    if (has_rows) {
        const u32 row0 = first_row_of_thread();
        const u32 scales = shared_address(smem.stages[stage].scale) + (lane_of() & 3) * 8;
        const float factor[2] = {smem.q_factor[row0], smem.q_factor[row0 + 8]};
        references.now[0] = smem.reference[row0];
        references.now[1] = smem.reference[row0 + 8];
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
    }
    bar_arrive(REFERENCE_PASSED + group, SCORE_THREADS);

    if (!first_own) bar_sync(P_FREE + group, WARPGROUP + VALUE_THREADS);
    if (has_rows) {
        smem.rescale[group][first_row_of_thread()] = references.factor[0];
        smem.rescale[group][first_row_of_thread() + 8] = references.factor[1];
        if (lane_of() == 0) reinterpret_cast<volatile u8*>(&smem.rescaled[group])[warp_of_group()] = references.moved;
        store_p(shared_address(smem.p[group]), s);
    }
    fence_proxy_async();
    bar_arrive(P_READY + group, WARPGROUP + VALUE_THREADS);
}

// All segments of this block, by score warpgroup `group` (0 or 1).
template <class Shared>
__device__ __forceinline__ void score_segments(const DecodeArgs& args, Shared& smem, const int group) {
    // One warp looks up the page ids of the tiles that will take this warpgroup's places in the ring: a lane a piece.
    const bool looks_up = warp_of_group() == 0;
    u32 tile = group;  // numbered through the block's segments
    u32 begin = 0;     // first tile of the segment
    Lookup next{0, NO_TILE};
    if (looks_up) next = look_up(args, smem, 0, tile + Shared::STAGES, lane_of());

#pragma unroll 1
    for (u32 number = 0;; ++number) {
        const u32 end = begin + warp_uniform(smem.segments[number % SEGMENT_RING].tiles);
        if (end == begin) break;
        begin_segment(args, smem, group, number);
        const u32 masked_from = warp_uniform(begin + first_masked(args, smem.segments[number % SEGMENT_RING]));
        RowState state{{0.f, 0.f}, {NO_REFERENCE, NO_REFERENCE}};
#pragma unroll 1
        for (; tile < end; tile += 2) {
            const u32 stage = tile % Shared::STAGES;
            if (looks_up) {
                if (lane_of() < MAX_PIECES) smem.pieces[(tile + Shared::STAGES) % PIECE_RING][lane_of()] = next.piece(args);
                // For this warpgroup's next tile: a round early, so that nobody waits for it.
                next = look_up(args, smem, number, tile + 2 + Shared::STAGES - begin, lane_of());
            }
            mbarrier_wait(shared_address(&smem.full[stage]), tile / Shared::STAGES & 1);
            float s[32];
            issue_logits(s, smem, stage);
            wgmma_wait_group<0>();
            keep_in_registers(s);
            const bool careful = tile == begin || tile >= masked_from || args.scale_log2 < 0.f;
            if (tile >= masked_from) mask_tile(args, smem, group, number, tile - begin, stage, s);
            softmax_tile(smem, group, stage, tile == begin, tile < begin + 2, careful, s, state);
        }
        end_segment(smem, group, number, begin, end, state);
        begin = end;
    }
}

}  // namespace snapmla
