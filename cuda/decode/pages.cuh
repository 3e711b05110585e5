// Bringing pages into shared memory.
//
// Content goes through a ring of five tiles, rope and scales through two. A value warp refills a content stage as soon as
// its warpgroups have read it; the score warpgroup of a tile refills its rope stage once its product is done. Page ids are
// looked up by the score warpgroups, rounds earlier, and handed on through a ring. Tiles are numbered on through the
// segments, so all this runs on from one to the next.
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
__device__ __forceinline__ Lookup look_up(const DecodeArgs& args, const SharedMemory& smem, u32 segment, u32 ahead, u32 index) {
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

// Where a piece's rows are.
struct PieceSource {
    const u8* page;
    u32 row;
};

__device__ __forceinline__ PieceSource piece_source(const DecodeArgs& args, u32 piece) {
    if (args.page_size == TILE_TOKENS) return {args.pages + i64(piece) * args.page_stride, 0};
    const u32 rows = piece_rows(args), pieces = args.page_size / rows, page = piece / pieces;
    return {args.pages + i64(page) * args.page_stride, (piece - page * pieces) * rows};
}

// Content of one tile into `stage`. A whole warp: lane l has piece l of the tile if `holds`.
__device__ __forceinline__ void issue_content(const DecodeArgs& args, SharedMemory& smem, u32 stage, u32 piece, bool holds,
                                              u32 index) {
    const bool copies = holds && piece < NO_PIECE;
    const u32 rows = piece_rows(args);
    const u32 bytes = __popc(__ballot_sync(~0u, copies)) * rows * CONTENT_DIM;
    const u32 barrier = shared_address(&smem.content_full[stage]);
    if (holds && index == 0 && piece != NO_TILE) mbarrier_arrive_expect_tx(barrier, bytes);
    __syncwarp();
    if (!copies) return;
    const u32 to = shared_address(smem.content[stage]);
    const PieceSource from = piece_source(args, piece);
    if (args.page_size == TILE_TOKENS) {
        bulk_copy_g2s(to, from.page, CONTENT_TILE_BYTES, barrier);
        return;
    }
#pragma unroll 1
    for (u32 block = 0; block < 4; ++block) {
        bulk_copy_g2s(to + block * BLOCK_BYTES + index * rows * ROW_BYTES,
                      from.page + (i64(block) * args.page_size + from.row) * ROW_BYTES, rows * ROW_BYTES, barrier);
    }
}

// Rope and scales of one tile: rope into stage `stage`, scales into stage `scale_stage`.
__device__ __forceinline__ void issue_rope(const DecodeArgs& args, SharedMemory& smem, u32 stage, u32 scale_stage,
                                           u32 piece, bool holds, u32 index) {
    const bool copies = holds && piece < NO_PIECE;
    const u32 rows = piece_rows(args);
    const u32 bytes = __popc(__ballot_sync(~0u, copies)) * rows * (ROW_BYTES + 4);
    const u32 barrier = shared_address(&smem.rope_full[stage]);
    if (holds && index == 0 && piece != NO_TILE) mbarrier_arrive_expect_tx(barrier, bytes);
    __syncwarp();
    if (!copies) return;
    const PieceSource from = piece_source(args, piece);
    const u8* rope = from.page + args.page_size * CONTENT_DIM;
    bulk_copy_g2s(shared_address(smem.rope[stage]) + index * rows * ROW_BYTES, rope + from.row * ROW_BYTES,
                  rows * ROW_BYTES, barrier);
    bulk_copy_g2s(shared_address(smem.scale[scale_stage]) + index * rows * 4,
                  rope + args.page_size * ROW_BYTES + from.row * 4, rows * 4, barrier);
}

// The first five tiles: one warp. Only two are asked for at once: what a block asks for after a deep prefetch waits
// behind it (26 MB for all blocks, 6 us), and the queries are about to be.
__device__ __forceinline__ void issue_first_tiles(const DecodeArgs& args, SharedMemory& smem) {
    if (smem.segments[0].tiles == 0) return;
    const u32 lane = threadIdx.x % WARP;
    // Lane 8t + i looks up piece i of tile t; and of tile 4, once these are there.
    const Lookup first = look_up(args, smem, 0, lane / MAX_PIECES, lane % MAX_PIECES);
    const Lookup fifth = look_up(args, smem, 0, 4, lane);
    const u32 piece = first.piece(args);
#pragma unroll 1
    for (u32 tile = 0; tile < CONTENT_STAGES; ++tile) {
        if (tile == 2) mbarrier_wait(shared_address(&smem.content_full[0]), 0);
        const bool holds = tile < 4 ? lane / MAX_PIECES == tile : lane < MAX_PIECES;
        const u32 mine = tile < 4 ? piece : fifth.piece(args);
        issue_content(args, smem, tile, mine, holds, lane % MAX_PIECES);
        if (tile < 2) issue_rope(args, smem, tile, tile, mine, holds, lane % MAX_PIECES);
    }
}

}  // namespace snapmla
