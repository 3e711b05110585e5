// The sequences of a batch as the plans see them: how many tiles each has for a row group, and sums over them.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

__device__ __forceinline__ u32 tiles_of_length(u32 length) { return (length + TILE_TOKENS - 1) / TILE_TOKENS; }

// Whether a sequence has rows in the row group whose first one this is.
__device__ __forceinline__ bool has_rows(const DecodeArgs& args, u32 sequence, u32 group_first_row) {
    return args.cu_q_lens == nullptr || query_span(args, sequence).count * args.num_heads > group_first_row;
}

// Tiles of a sequence for a row group: none when it has no rows there.
__device__ __forceinline__ u32 sequence_tiles(const DecodeArgs& args, u32 sequence, u32 group_first_row) {
    return has_rows(args, sequence, group_first_row) ? tiles_of_length(sequence_length(args, sequence)) : 0;
}

__device__ __forceinline__ u32 warp_inclusive_sum(u32 value) {
    const u32 lane = lane_of();
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// A large batch is summed in sections, one a warp: multiples of 32 sequences, so that loads are coalesced.
__device__ __forceinline__ u32 section_size(const DecodeArgs& args) { return (args.batch + THREADS - 1) / THREADS * WARP; }

// Each section's totals to shared memory. The whole block.
template <class Totals, class Shared>
__device__ __forceinline__ void sum_sections(const DecodeArgs& args, Shared& smem, u32 group_first_row) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, section = section_size(args);
    const u32 end = min((warp + 1) * section, args.batch);
    Totals totals{};
#pragma unroll 4
    for (u32 sequence = warp * section + lane; sequence < end; sequence += WARP)
        totals.add(sequence_tiles(args, sequence, group_first_row));
    totals = totals.of_warp();
    if (lane == 0) smem.template sections<Totals>()[warp] = totals;
    __syncthreads();
}

// A sequence, and where it starts on an axis.
struct AxisPlace {
    u32 sequence;
    u32 position;
};

// The last section that starts at `position` or before, from a lane's section's length. One warp.
__device__ __forceinline__ AxisPlace section_at(const DecodeArgs& args, u32 length, u32 position) {
    const u32 before = warp_inclusive_sum(length) - length;
    const u32 section = __popc(__ballot_sync(~0u, threadIdx.x < THREADS / WARP && before <= position)) - 1;
    return {section * section_size(args), __shfl_sync(~0u, before, section)};
}

}  // namespace snapmla
