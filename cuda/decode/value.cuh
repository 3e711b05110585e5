// The value warpgroups: O^T += V^T P^T, each for half of the value dims.
//
// V^T comes straight out of the content tile: one transposing ldmatrix and four byte permutes make a register A operand
// of 16 dims x 32 tokens a warp; row r of the operand is dim 2r, row r + 8 dim 2r + 1. Within 16 tokens the reduction runs
// in the order in which P is stored without a shuffle: 2j, 2j+1, 2j+8, 2j+9, or for narrow tiles 2j, 2j+8, 2j+1, 2j+9.
//
// Every product over a tile's 64 tokens goes to fresh accumulators and is added to O in full precision: the tensor
// cores add with about 14 bits, and a chain of 64k tokens left in place loses a third of a value's mean.
#pragma once

#include "decode/barriers.cuh"
#include "decode/config.cuh"
#include "decode/pages.cuh"
#include "ptx/matrix.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace snapmla {

// A thread's share of O: [64 dims of its warpgroup's half][ROWS / 2]. Registers 4c … 4c+3 of block m are, for heads
// h = 8c + 2j and h + 1 and dims d = 64m + 16 warp + 2g and d + 1: (d, h), (d, h+1), (d+1, h), (d+1, h+1).
template <int ROWS>
using Output = float[4][ROWS / 2];

template <int ROWS>
__device__ __forceinline__ void value_fragment(const u32 (&raw)[4], u32 (&a)[4]) {
    constexpr u32 EVEN = ROWS == 64 ? 0x6420 : 0x6240, ODD = EVEN + 0x1111;
    a[0] = __byte_perm(raw[0], raw[1], EVEN);
    a[1] = __byte_perm(raw[0], raw[1], ODD);
    a[2] = __byte_perm(raw[2], raw[3], EVEN);
    a[3] = __byte_perm(raw[2], raw[3], ODD);
}

// The raw fragments of 64 tokens x 16 dims from `address` on.
__device__ __forceinline__ void load_values(u32 address, u32 (&raw)[2][4]) {
    ldmatrix_x4_trans(address, raw[0]);
    ldmatrix_x4_trans(address + 32 * ROW_BYTES, raw[1]);
}

// The factors that a tile's moved references put on O so far. `moved` has a byte for each 16 rows: the others' are 1.
template <int ROWS>
__device__ __forceinline__ void rescale_output(Output<ROWS>& o, u32 factors, u32 moved) {
#pragma unroll
    for (int rows = 0; rows < ROWS / 16; ++rows) {
        if ((moved >> (8 * rows) & 1) == 0) continue;
#pragma unroll
        for (int c = 2 * rows; c < 2 * rows + 2; ++c) {
            const float2 factor = load_shared_f32x2(factors + c * 32);
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                o[m][4 * c] *= factor.x;
                o[m][4 * c + 1] *= factor.y;
                o[m][4 * c + 2] *= factor.x;
                o[m][4 * c + 3] *= factor.y;
            }
        }
    }
}

// O over the tiles of one segment, by value warpgroup `half`. `tile` is the segment's first, numbered through the
// block.
template <int ROWS>
__device__ __forceinline__ void accumulate_segment(const DecodeArgs& args, SharedMemory<ROWS>& smem, const int half, u32 tile, u32 end,
                                                   Output<ROWS>& o) {
    constexpr u32 STAGES = SharedMemory<ROWS>::STAGES;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP % 4;
    // Two column blocks of 128 dims a half; a warp's 16 dims are one chunk of each 64.
    const u32 values = shared_address(smem.stages) + half * 2 * BLOCK_BYTES + swizzled(lane, warp * CHUNK_BYTES);

    bar_sync(P_READY + (tile & 1), WARPGROUP + VALUE_THREADS);
    u32 raw[2][4];
    load_values(values + tile % STAGES * u32(sizeof(Stage)), raw);
#pragma unroll 1
    for (; tile < end; ++tile) {
        const int buffer = tile & 1;
        const u32 here = values + tile % STAGES * u32(sizeof(Stage));
        const u32 next = values + (tile + 1) % STAGES * u32(sizeof(Stage));
        const u32 p = descriptor_word(shared_address(smem.p) + buffer * SharedMemory<ROWS>::P_BYTES);
        const u32 moved = load_shared_u32(shared_address(&smem.rescaled[buffer]));
        if (moved != 0) rescale_output<ROWS>(o, shared_address(smem.rescale[buffer]) + (threadIdx.x & 3) * 8, moved);

        // Two products are in flight when there are registers for both: up to 32 rows.
        constexpr int FRESH = ROWS == 64 ? 1 : 2;
        float fresh[FRESH][ROWS / 2];
        u32 a[FRESH][2][4];
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            const int f = m % FRESH;
            value_fragment<ROWS>(raw[0], a[f][0]);
            value_fragment<ROWS>(raw[1], a[f][1]);
            wgmma_fence();
            wgmma_e4m3_rs<ROWS>(fresh[f], a[f][0], descriptor_64b(p), false);
            wgmma_e4m3_rs<ROWS>(fresh[f], a[f][1], descriptor_64b(p + 2), true);
            wgmma_commit_group();
            // The next fragments come while the product runs, after the last ones those of the next tile, which the
            // score warpgroups make sure there is.
            if (m == 3) {
                bar_sync(P_READY + (buffer ^ 1), WARPGROUP + VALUE_THREADS);
                // Here both warpgroups have had this tile's last fragments: its stage is free.
                if (brings_tiles(args)) {
                    const u32 piece = smem.pieces[(tile + STAGES) % PIECE_RING][lane % MAX_PIECES];
                    issue_tile(args, smem, tile % STAGES, piece, lane < int(MAX_PIECES), lane);
                }
            }
            load_values(m == 3 ? next : (here + (m + 1) / 2 * BLOCK_BYTES) ^ ((m + 1) % 2 * 4 * CHUNK_BYTES), raw);
            if (FRESH == 1 || m > 0) {
                wgmma_wait_group<FRESH - 1>();
                const int done = m - (FRESH - 1);
#pragma unroll
                for (int i = 0; i < ROWS / 2; ++i) o[done][i] += fresh[done % FRESH][i];
            }
        }
        if constexpr (FRESH == 2) {
            wgmma_wait_group<0>();
#pragma unroll
            for (int i = 0; i < ROWS / 2; ++i) o[3][i] += fresh[1][i];
        }
        bar_arrive(P_FREE + buffer, WARPGROUP + VALUE_THREADS);
    }
}

}  // namespace snapmla
