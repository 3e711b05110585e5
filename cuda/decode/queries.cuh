// Query rows into shared memory: quantised here when they come raw, copied when they come quantised.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "quantise.cuh"

namespace snapmla {

// Place of content byte `dim` of row `r`.
template <class Shared>
__device__ __forceinline__ u8* query_content_at(Shared& smem, u32 r, u32 dim) {
    return smem.queries[dim / ROW_BYTES] + swizzled(r, dim % ROW_BYTES);
}

// Place of rope byte `byte` of row `r`.
template <class Shared>
__device__ __forceinline__ u32* query_rope_at(Shared& smem, u32 r, u32 byte) {
    return reinterpret_cast<u32*>(smem.queries[4] + swizzled(r, byte));
}

template <class Shared>
__device__ __forceinline__ void set_query_scale(const DecodeArgs& args, Shared& smem, u32 r, float scale) {
    // Never 0 by underflow: a masked logit, an infinity, times 0 would be a NaN.
    const float factor = args.scale_log2 * scale;
    if (threadIdx.x % WARP == 0) smem.q_factor[r] = fabsf(factor) < 0x1p-120f ? copysignf(0x1p-120f, args.scale_log2) : factor;
}

// Rows past the last one are zeros with scale 1: their probabilities stay finite and are never stored.
template <class Shared>
__device__ __forceinline__ void clear_query(const DecodeArgs& args, Shared& smem, u32 r) {
    const u32 lane = threadIdx.x % WARP;
    *reinterpret_cast<uint4*>(query_content_at(smem, r, 16 * lane)) = make_uint4(0, 0, 0, 0);
    *query_rope_at(smem, r, 4 * lane) = 0;
    set_query_scale(args, smem, r, 1.f);
}

template <class T, class Shared>
__device__ __forceinline__ void store_query(const DecodeArgs& args, Shared& smem, u32 r, const RawRow<T>& raw) {
    const u32 lane = threadIdx.x % WARP;
    const QuantisedRow<T> row = quantise(raw);
#pragma unroll
    for (u32 i = 0; i < RawRow<T>::VECTORS; i++) {
        u32* to = reinterpret_cast<u32*>(query_content_at(smem, r, RawRow<T>::dim(i, lane)));
#pragma unroll
        for (u32 j = 0; j < QuantisedRow<T>::WORDS; j++) to[j] = row.content[i][j];
    }
    *query_rope_at(smem, r, 4 * lane) = row.rope;
    set_query_scale(args, smem, r, row.scale);
}

// Rows of one sequence from `first_row` on: what load_queries passes down.
struct QueryRows {
    u32 sequence;
    u32 first_row;
    u32 rows;  // of the sequence
    u32 q_first;
};

template <class T, u32 IN_FLIGHT, class Shared>
__device__ __forceinline__ void load_raw_queries(const DecodeArgs& args, Shared& smem, QueryRows at, u32 warp,
                                                 u32 warps) {
    const u32 lane = threadIdx.x % WARP;
#pragma unroll 1
    for (u32 r = warp * IN_FLIGHT; r < Shared::ROWS; r += warps * IN_FLIGHT) {
        RawRow<T> raw[IN_FLIGHT];
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            const Row row = row_at(args, min(at.first_row + r + i, at.rows - 1));
            raw[i].load(args.q_content.ptr + row_offset(args, args.q_content, at.sequence, at.q_first, row),
                        args.q_rope.ptr + row_offset(args, args.q_rope, at.sequence, at.q_first, row), args.q_vectors,
                        lane);
        }
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            if (at.first_row + r + i < at.rows) {
                store_query(args, smem, r + i, raw[i]);
            } else {
                clear_query(args, smem, r + i);
            }
        }
    }
}

template <class Shared>
__device__ __forceinline__ void load_quantised_queries(const DecodeArgs& args, Shared& smem, QueryRows at, u32 warp,
                                                       u32 warps) {
    const u32 lane = threadIdx.x % WARP;
    for (u32 r = warp; r < Shared::ROWS; r += warps) {
        if (at.first_row + r >= at.rows) {
            clear_query(args, smem, r);
            continue;
        }
        const Row row = row_at(args, at.first_row + r);
        const u8* content = args.q_content.ptr + row_offset(args, args.q_content, at.sequence, at.q_first, row);
        const u8* rope = args.q_rope.ptr + row_offset(args, args.q_rope, at.sequence, at.q_first, row);
        const u8* scale = args.q_scale.ptr + row_offset(args, args.q_scale, at.sequence, at.q_first, row);
        u8* to = query_content_at(smem, r, 16 * lane);
        if (args.q_vectors) {
            *reinterpret_cast<U32x4*>(to) = load_u32x4(content + 16 * lane);
        } else {
            for (u32 i = 0; i < 16; i++) to[i] = __ldg(content + 16 * lane + i);
        }
        *query_rope_at(smem, r, 4 * lane) =
            load_u16_cached(rope + 4 * lane) | u32(load_u16_cached(rope + 4 * lane + 2)) << 16;
        set_query_scale(args, smem, r, load_f32(reinterpret_cast<const float*>(scale)));
    }
}

// The block's rows of a segment's sequence from `first_row` on, by warps 0…`warps`-1.
// `IN_FLIGHT` rows at a time take 9 registers a thread each, or 18 for F32.
template <u32 IN_FLIGHT, class Shared>
__device__ __forceinline__ void load_queries(const DecodeArgs& args, Shared& smem, const Segment& segment,
                                             u32 first_row, u32 warp, u32 warps) {
    const QueryRows at{segment.sequence, first_row, query_span(args, segment.sequence).count * args.num_heads,
                       segment.q_first};
    switch (args.q_kind) {
        case ELEMENT_BF16: return load_raw_queries<Bf16, IN_FLIGHT>(args, smem, at, warp, warps);
        case ELEMENT_F16: return load_raw_queries<F16, IN_FLIGHT>(args, smem, at, warp, warps);
        case ELEMENT_F32: return load_raw_queries<F32, (IN_FLIGHT + 1) / 2>(args, smem, at, warp, warps);
        default: return load_quantised_queries(args, smem, at, warp, warps);
    }
}

}  // namespace snapmla
