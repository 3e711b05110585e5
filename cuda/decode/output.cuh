// Where finished rows go: the caller's tensors; and where unfinished ones go: the workspace.
#pragma once

#include "decode/barriers.cuh"
#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "decode/value.cuh"
#include "element.cuh"
#include "ptx/math.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

// The rows of one sequence that a block works on.
struct RowGroup {
    u32 sequence;
    u32 q_first;
    u32 first_row;
    u32 rows;  // of the sequence

    __device__ __forceinline__ bool has(u32 r) const { return first_row + r < rows; }
};

__device__ __forceinline__ RowGroup row_group(const DecodeArgs& args, u32 sequence, u32 first_row) {
    const QuerySpan span = query_span(args, sequence);
    return {sequence, span.first, first_row, span.count * args.num_heads};
}

template <class T>
__device__ __forceinline__ void store_pair_as(u8* row, u32 dim, float low, float high, bool vectors) {
    u8* to = row + dim * T::BYTES;
    if (vectors) {
        T::store_pair(to, T::pack(low, high));
    } else {
        T::store_pair_elements(to, T::pack(low, high));
    }
}

// Two neighbouring dims of a row, whatever the caller's type. Sixteen-bit types share the stores: what is cold costs
// instruction fetches.
template <u32 BYTES>
__device__ __forceinline__ void store_pair(const DecodeArgs& args, u8* row, u32 dim, float low, float high) {
    if constexpr (BYTES == 4) {
        store_pair_as<F32>(row, dim, low, high, args.out_vectors);
    } else {
        const u32 pair = args.out_kind == ELEMENT_BF16 ? Bf16::pack(low, high) : F16::pack(low, high);
        if (args.out_vectors) {
            Bf16::store_pair(row + 2 * dim, pair);
        } else {
            Bf16::store_pair_elements(row + 2 * dim, pair);
        }
    }
}

__device__ __forceinline__ void store_pair(const DecodeArgs& args, u8* row, u32 dim, float low, float high) {
    if (args.out_kind == ELEMENT_F32) {
        store_pair<4>(args, row, dim, low, high);
    } else {
        store_pair<2>(args, row, dim, low, high);
    }
}

__device__ __forceinline__ u8* output_row(const DecodeArgs& args, const RowGroup& group, u32 r) {
    return args.out.ptr + row_offset(args, args.out, group.sequence, group.q_first, row_at(args, group.first_row + r));
}

// Natural log-sum-exp from a base-2 reference and a sum relative to it.
__device__ __forceinline__ void store_lse(const DecodeArgs& args, const RowGroup& group, u32 r, float reference, float sum) {
    if (args.lse.ptr == nullptr) return;
    const Row row = row_at(args, group.first_row + r);
    u8* to = args.lse.ptr + row_offset(args, args.lse, group.sequence, group.q_first, row);
    constexpr float LN2 = 0.69314718056f;
    const float lse = sum == 0.f ? -__uint_as_float(0x7f800000u) : (reference + log2_approx(sum)) * LN2;
    *reinterpret_cast<float*>(to) = lse;
}

// A row that attended to nothing has a sum of 0 and an output of 0.
__device__ __forceinline__ float inverse_sum(float sum) { return sum == 0.f ? 0.f : __fdividef(1.f, sum); }

// Accumulators come in items of four, [item][256 threads] in a partial: item i of thread t is registers 4c … 4c+3 of
// block m, i = 4c + m (see Output).
struct ItemPlace {
    u32 row;  // and row + 1
    u32 dim;  // and dim + 1
};

__device__ __forceinline__ ItemPlace item_place(u32 item, u32 thread) {
    const u32 lane = thread % WARP;
    return {item / 4 * 8 + 2 * (lane & 3), thread / WARPGROUP * 256 + item % 4 * 64 + thread / WARP % 4 * 16 + lane / 4 * 2};
}

// Where a row goes and what it is divided by: worked out once, not by each of the threads that have a share of it.
struct alignas(16) RowTarget {
    u8* out;  // NULL past the last row
    float inverse;
};

// All of a sequence's tiles were this block's: divide and store. The value warpgroups.
template <u32 BYTES, int ROWS>
__device__ __forceinline__ void store_output_as(const DecodeArgs& args, const RowTarget* targets, const Output<ROWS>& o) {
    // Opaque, or it is worked out before O is, and spilled.
    const u32 thread = thread_of() - SCORE_THREADS;
    const u32 first_dim = item_place(0, thread).dim;
#pragma unroll
    for (int c = 0; c < ROWS / 8; ++c) {
#pragma unroll
        for (int second = 0; second < 2; ++second) {
            const RowTarget target = targets[item_place(4 * c, thread).row + second];
            if (target.out == nullptr) continue;
            u8* row = target.out + first_dim * BYTES;
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                store_pair<BYTES>(args, row, 64 * m, o[m][4 * c + second] * target.inverse,
                                  o[m][4 * c + 2 + second] * target.inverse);
            }
        }
    }
}

template <int ROWS>
__device__ __forceinline__ void store_output(const DecodeArgs& args, SharedMemory<ROWS>& smem, u32 sequence, u32 first_row,
                                             const Output<ROWS>& o) {
    // P is idle from a segment's last tile to the statistics' release.
    RowTarget* targets = reinterpret_cast<RowTarget*>(smem.p);
    const u32 thread = threadIdx.x - SCORE_THREADS;
    if (thread < ROWS) {
        const RowGroup group = row_group(args, sequence, first_row);
        const float sum = smem.sum[0][thread] + smem.sum[1][thread];
        targets[thread] = {group.has(thread) ? output_row(args, group, thread) : nullptr, inverse_sum(sum)};
        if (group.has(thread)) store_lse(args, group, thread, smem.reference[thread], sum);
    }
    bar_sync(VALUE_BOTH, VALUE_THREADS);
    if (args.out_kind == ELEMENT_F32) {
        store_output_as<4, ROWS>(args, targets, o);
    } else {
        store_output_as<2, ROWS>(args, targets, o);
    }
}

// Others have tiles of the sequence too: O as it is, with its references and sums, to partial number `partial`.
template <int ROWS>
__device__ __forceinline__ void store_partial(const DecodeArgs& args, const SharedMemory<ROWS>& smem, u32 partial,
                                              const Output<ROWS>& o) {
    const u32 thread = threadIdx.x - SCORE_THREADS;
    float4* to = args.partial_out + u64(partial) * (ROWS * CONTENT_DIM / 4) + thread;
#pragma unroll
    for (int c = 0; c < ROWS / 8; ++c) {
#pragma unroll
        for (int m = 0; m < 4; ++m)
            __stcg(to + (4 * c + m) * VALUE_THREADS, make_float4(o[m][4 * c], o[m][4 * c + 1], o[m][4 * c + 2], o[m][4 * c + 3]));
    }
    if (thread < ROWS)
        __stcg(args.partial_stats + u64(partial) * ROWS + thread,
               make_float2(smem.reference[thread], smem.sum[0][thread] + smem.sum[1][thread]));
}

// Sequences with nothing to attend to have no tiles, so nobody's plan: outputs 0, log-sum-exp -infinity. The workers of
// a row group share them out; all threads of `threads` take part.
template <int ROWS>
__device__ __forceinline__ void store_empty_sequences(const DecodeArgs& args, u32 thread, u32 threads) {
    const u32 first_row = block_row_group(args) * ROWS;
    for (u32 sequence = block_worker(args); sequence < args.batch; sequence += args.workers) {
        if (sequence_length(args, sequence) != 0) continue;
        const RowGroup group = row_group(args, sequence, first_row);
#pragma unroll 1
        for (u32 i = thread; i < ROWS * (CONTENT_DIM / 2); i += threads) {
            const u32 r = i / (CONTENT_DIM / 2), dim = i % (CONTENT_DIM / 2) * 2;
            if (group.has(r)) store_pair(args, output_row(args, group, r), dim, 0.f, 0.f);
        }
        if (thread < ROWS && group.has(thread)) store_lse(args, group, thread, 0.f, 0.f);
    }
}

}  // namespace snapmla
