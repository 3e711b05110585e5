// Query rows into shared memory: quantised here when they come raw, copied when they come quantised.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "ptx/async_copy.cuh"
#include "ptx/shared.cuh"
#include "ptx/warp.cuh"
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
    if (lane_of() == 0) smem.q_factor[r] = fabsf(factor) < 0x1p-120f ? copysignf(0x1p-120f, args.scale_log2) : factor;
}

// Rows past the last one are zeros with scale 1: their probabilities stay finite and are never stored.
template <class Shared>
__device__ __forceinline__ void clear_query(const DecodeArgs& args, Shared& smem, u32 r) {
    const u32 lane = lane_of();
    *reinterpret_cast<uint4*>(query_content_at(smem, r, 16 * lane)) = make_uint4(0, 0, 0, 0);
    *query_rope_at(smem, r, 4 * lane) = 0;
    set_query_scale(args, smem, r, 1.f);
}

template <class T, class Shared>
__device__ __forceinline__ void store_query(const DecodeArgs& args, Shared& smem, u32 r, const RawRow<T>& raw) {
    const u32 lane = lane_of();
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
    const u32 lane = lane_of();
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
    const u32 lane = lane_of();
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

// The first segment's queries come through the ring, whose last stages are not needed yet: so all rows are on their way
// at once, and the code is a short loop, run from a cold instruction cache. Only rows whose content is 16-byte aligned.
__device__ __forceinline__ bool stages_queries(const DecodeArgs& args) {
    return args.q_vectors && args.q_kind != ELEMENT_QUANTISED;
}

// A warp's rows there: four of 16-bit numbers, two of F32.
constexpr u32 STAGED_ROW_BYTES = 2 * (CONTENT_DIM + ROPE_DIM);
constexpr u32 STAGED_BYTES = 4 * STAGED_ROW_BYTES;

template <class T>
__device__ __forceinline__ void copy_query_async(u32 to, const u8* content, const u8* rope) {
    const u32 lane = lane_of();
#pragma unroll
    for (u32 i = 0; i < RawRow<T>::VECTORS; i++) copy_async_16(to + (WARP * i + lane) * 16, content + (WARP * i + lane) * 16);
    copy_async<2 * T::BYTES>(to + CONTENT_DIM * T::BYTES + lane * 2 * T::BYTES, rope + lane * 2 * T::BYTES);
}

template <class T>
__device__ __forceinline__ RawRow<T> staged_row(const u8* from) {
    const u32 lane = lane_of();
    RawRow<T> raw;
#pragma unroll
    for (u32 i = 0; i < RawRow<T>::VECTORS; i++) raw.content[i] = reinterpret_cast<const typename T::Vector*>(from)[WARP * i + lane];
    raw.rope = reinterpret_cast<const typename T::Pair*>(from + CONTENT_DIM * T::BYTES)[lane];
    return raw;
}

// All warps. `meanwhile` is run while the first rows are on their way.
template <class Shared, class Meanwhile>
__device__ __forceinline__ void load_first_queries(const DecodeArgs& args, Shared& smem, u32 first_row, const Meanwhile& meanwhile) {
    static_assert(THREADS / WARP * STAGED_BYTES <= 2 * sizeof(Stage), "queries are staged in the last two stages");
    constexpr u32 WARPS = THREADS / WARP;
    const Segment& segment = smem.segments[0];
    const u32 warp = threadIdx.x / WARP, rows = query_span(args, segment.sequence).count * args.num_heads;
    u8* staged = reinterpret_cast<u8*>(&smem.stages[Shared::STAGES - 2]) + warp * STAGED_BYTES;
    const bool wide = args.q_kind == ELEMENT_F32;
    const u32 row_bytes = wide ? 2 * STAGED_ROW_BYTES : STAGED_ROW_BYTES;
#pragma unroll 1
    for (u32 base = warp; base < Shared::ROWS; base += WARPS * STAGED_BYTES / row_bytes) {
        const u32 end = min(base + WARPS * STAGED_BYTES / row_bytes, u32(Shared::ROWS));
        // A lane a row and tensor: addresses take longer to work out than to hand around.
        const u32 own = min(first_row + base + lane_of() / 2 * WARPS, rows - 1);
        const BatchRows& tensor = lane_of() % 2 == 0 ? args.q_content : args.q_rope;
        const u8* own_row = tensor.ptr + row_offset(args, tensor, segment.sequence, segment.q_first, row_at(args, own));
#pragma unroll 1
        for (u32 r = base, i = 0; r < end && first_row + r < rows; r += WARPS, ++i) {
            const u8* content = warp_shuffle(own_row, 2 * i);
            const u8* rope = warp_shuffle(own_row, 2 * i + 1);
            if (wide) {
                copy_query_async<F32>(shared_address(staged + i * row_bytes), content, rope);
            } else {
                copy_query_async<Bf16>(shared_address(staged + i * row_bytes), content, rope);
            }
        }
        if (base == warp) meanwhile();
        copy_async_wait_all();
        __syncwarp();
        const u8* at = staged;
#pragma unroll 1
        for (u32 r = base; r < end; r += WARPS, at += row_bytes) {
            if (first_row + r >= rows) {
                clear_query(args, smem, r);
            } else if (wide) {
                store_query(args, smem, r, staged_row<F32>(at));
            } else if (args.q_kind == ELEMENT_BF16) {
                store_query(args, smem, r, staged_row<Bf16>(at));
            } else {
                store_query(args, smem, r, staged_row<F16>(at));
            }
        }
        __syncwarp();
    }
}

}  // namespace snapmla
