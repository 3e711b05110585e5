// Bringing pages into shared memory.
//
// Tiles (content, rope and scales) go through a ring of stages. Value warps refill a stage as soon as their warpgroups have
// read it, with the tile that many on; a deeper prefetch would gain nothing, since everything a block asks for later, its
// next queries say, waits behind it. Page ids are looked up by the score warpgroups, a round earlier, and handed on
// through a ring. Tiles are numbered on through the segments, so all this runs on from one to the next.
#pragma once

#include "decode/config.cuh"
#include "decode/rows.cuh"
#include "ptx/barrier.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/shared.cuh"

namespace snapmla {

// Records that a piece of a tile has: the largest of 8, 16, 32 and 64 that divides the page size. A piece lies in one
// page, and is named by its number in the pool: page * pieces a page + piece of the page. That is less than 2^32 - 2 for
// any pool that fits into a GPU's memory.
constexpr u32 NO_TILE = ~0u;        // past the last segment's end
constexpr u32 NO_PIECE = ~0u - 1;   // of a tile that is there: past the sequence's end, or of a page outside the pool

__device__ __forceinline__ u32 piece_rows(const DecodeArgs& args) {
    return min(args.page_size & (0u - args.page_size), u32(TILE_TOKENS));
}

// A piece whose page id is on its way: nobody looks at it before it is needed.
struct Lookup {
    u32 page;
    u32 offset;  // piece of the page; or NO_TILE or NO_PIECE

    __device__ __forceinline__ u32 piece(const DecodeArgs& args) const {
        if (offset >= NO_PIECE) return offset;
        if (page >= args.num_pages) return NO_PIECE;
        return args.page_size == TILE_TOKENS ? page : page * (args.page_size / piece_rows(args)) + offset;
    }
};

// Piece `index` of the tile that lies `ahead` tiles after the start of segment number `segment`. Table entries past a
// sequence's end may hold anything and are not looked at.
template <class Shared>
__device__ __forceinline__ Lookup look_up(const DecodeArgs& args, const Shared& smem, u32 segment, u32 ahead, u32 index) {
    u32 tiles;
    while (ahead >= (tiles = smem.segments[segment % SEGMENT_RING].tiles)) {
        if (tiles == 0) return {0, NO_TILE};
        ahead -= tiles;
        ++segment;
    }
    const Segment& at = smem.segments[segment % SEGMENT_RING];
    u32 column = at.first_tile + ahead, offset = 0;
    bool reached = index == 0;
    if (args.page_size != TILE_TOKENS) {
        const u32 rows = piece_rows(args), token = column * TILE_TOKENS + index * rows;
        column = token / args.page_size;
        offset = (token - column * args.page_size) / rows;
        reached = index * rows < TILE_TOKENS && token < at.length;
    }
    if (!reached) return {0, NO_PIECE};
    const u8* row = args.block_table + at.sequence * args.block_table_stride;
    return {u32(load_i32(reinterpret_cast<const i32*>(row) + column)), offset};
}

__device__ __forceinline__ u32 value_warp() { return warp_uniform(threadIdx.x / WARP) - SCORE_THREADS / WARP; }

// A page that is a tile is one copy, by the first value warp: sliced among warps it comes no sooner. Of smaller pages'
// many copies value warp b issues those of column block b, and the one after the last block the scales: a warp issues
// them one after the other, 40 cycles each.
constexpr u32 PIECE_SLICES = 6;

// Whether this warp, a value warp, copies anything.
__device__ __forceinline__ bool brings_tiles(const DecodeArgs& args) {
    return value_warp() < (args.page_size == TILE_TOKENS ? 1 : PIECE_SLICES);
}

// This warp's share of one tile into `stage`, for a warp that brings tiles: lane l has piece l of the tile if `holds`.
template <class Shared>
__device__ __forceinline__ void issue_tile(const DecodeArgs& args, Shared& smem, u32 stage, u32 piece, bool holds, u32 index) {
    const u32 barrier = shared_address(&smem.full[stage]), to = shared_address(&smem.stages[stage]);
    if (args.page_size == TILE_TOKENS) {
        // This is on the value warpgroups' critical path: as little as there can be.
        if (!holds || index != 0 || piece == NO_TILE) return;
        constexpr u32 PAGE_BYTES = TILE_TOKENS * RECORD_BYTES;
        mbarrier_arrive_expect_tx(barrier, piece == NO_PIECE ? 0 : PAGE_BYTES);
        if (piece != NO_PIECE) bulk_copy_g2s(to, args.pages + i64(piece) * args.page_stride, PAGE_BYTES, barrier);
        return;
    }
    // The others' bytes may come before the first warp announces them: the phase waits for its arrival.
    const u32 slice = value_warp();
    const bool copies = holds && piece < NO_PIECE;
    const u32 rows = piece_rows(args), pieces = args.page_size / rows;
    if (slice == 0) {
        const u32 bytes = __popc(__ballot_sync(~0u, copies)) * rows * RECORD_BYTES;
        if (holds && index == 0 && piece != NO_TILE) mbarrier_arrive_expect_tx(barrier, bytes);
        __syncwarp();
    }
    if (!copies) return;
    const u32 page = piece / pieces, row = (piece - page * pieces) * rows;
    const u8* block = args.pages + i64(page) * args.page_stride + i64(slice) * args.page_size * ROW_BYTES;
    // The scales lie behind the last block, in a page as in a stage.
    const u32 row_bytes = slice < PIECE_SLICES - 1 ? ROW_BYTES : 4;
    bulk_copy_g2s(to + slice * BLOCK_BYTES + index * rows * row_bytes, block + row * row_bytes, rows * row_bytes, barrier);
}

// Tiles first…last-1 of the block, up to four: a warp that brings tiles, whose lane 8t + i has piece i of the t-th of them.
template <class Shared>
__device__ __forceinline__ Lookup look_up_tiles(const DecodeArgs& args, const Shared& smem, u32 first) {
    const u32 lane = threadIdx.x % WARP;
    return look_up(args, smem, 0, first + lane / MAX_PIECES, lane % MAX_PIECES);
}

template <class Shared>
__device__ __forceinline__ void issue_tiles(const DecodeArgs& args, Shared& smem, u32 first, u32 last, const Lookup& lookup) {
    const u32 lane = threadIdx.x % WARP, piece = lookup.piece(args);
#pragma unroll 1
    for (u32 tile = first; tile < last; ++tile)
        issue_tile(args, smem, tile, piece, lane / MAX_PIECES == tile - first, lane % MAX_PIECES);
}

}  // namespace snapmla
