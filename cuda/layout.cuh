// Where the parts of a record lie inside a page: cache format, version 1. Mirrors src/layout.rs.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

constexpr u32 CONTENT_DIM = 512;
constexpr u32 ROPE_DIM = 64;
constexpr u32 RECORD_BYTES = 644;
// A swizzled row: one column block of content, or all of rope.
constexpr u32 ROW_BYTES = 128;
constexpr u32 CHUNK_BYTES = 16;

static_assert(RECORD_BYTES == CONTENT_DIM + 2 * ROPE_DIM + sizeof(float), "a record is content, rope and scale");

// Byte `byte` of row `row` within a region of 128-byte rows, its 16-byte chunks swizzled.
__device__ __forceinline__ u32 swizzled(u32 row, u32 byte) {
    return row * ROW_BYTES + (byte ^ ((row & 7) * CHUNK_BYTES));
}

// Offset in a page of content dim `dim` of record `row`.
__device__ __forceinline__ u32 content_offset(u32 page_size, u32 row, u32 dim) {
    return dim / ROW_BYTES * page_size * ROW_BYTES + swizzled(row, dim % ROW_BYTES);
}

// Offset in a page of byte `byte` (two a dim) of record `row`'s rope.
__device__ __forceinline__ u32 rope_offset(u32 page_size, u32 row, u32 byte) {
    return CONTENT_DIM * page_size + swizzled(row, byte);
}

// Offset in a page of record `row`'s scale.
__device__ __forceinline__ u32 scale_offset(u32 page_size, u32 row) {
    return (CONTENT_DIM + ROW_BYTES) * page_size + row * u32(sizeof(float));
}

}  // namespace snapmla
