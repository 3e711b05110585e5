//! Where the parts of a record lie inside a page: cache format, version 1.
//!
//! A page of `n` records is one blob of `644 * n` bytes: content as four column blocks `[4][n][128]`, rope `[n][64]`
//! in BF16, scales `[n]` in F32. The eight 16-byte chunks of each 128-byte row of content and rope are permuted by
//! the 128-byte swizzle, so that one plain bulk copy brings a page into shared memory as WGMMA reads it.

/// Numbers in a content row.
pub const CONTENT_DIM: usize = 512;
/// Numbers in a rope row.
pub const ROPE_DIM: usize = 64;
/// Bytes the cache keeps of one token.
pub const RECORD_BYTES: usize = 644;
/// Bytes of a swizzled row: one column block of content, or all of rope.
pub const ROW_BYTES: usize = 128;
/// Column blocks of a content row.
pub const CONTENT_BLOCKS: usize = CONTENT_DIM / ROW_BYTES;
/// Unit of the swizzle.
pub const CHUNK_BYTES: usize = 16;
/// Tokens that a decode kernel takes at a time, and over which P shares a scale.
pub const TILE_TOKENS: usize = 64;

/// Bytes of a page of `page_size` records.
pub const fn page_bytes(page_size: usize) -> usize {
    RECORD_BYTES * page_size
}

/// Position of 16-byte chunk `chunk` within row `row` of any 128-byte-row region.
pub const fn swizzle(row: usize, chunk: usize) -> usize {
    chunk ^ (row & 7)
}

/// Byte offset in a page of the 16-byte chunk `chunk` (0..32, 16 dims each) of record `row`'s content.
pub const fn content_chunk(page_size: usize, row: usize, chunk: usize) -> usize {
    (chunk / 8 * page_size + row) * ROW_BYTES + swizzle(row, chunk % 8) * CHUNK_BYTES
}

/// Byte offset in a page of the 16-byte chunk `chunk` (0..8, 8 dims each) of record `row`'s rope.
pub const fn rope_chunk(page_size: usize, row: usize, chunk: usize) -> usize {
    CONTENT_DIM * page_size + row * ROW_BYTES + swizzle(row, chunk) * CHUNK_BYTES
}

/// Byte offset in a page of record `row`'s scale.
pub const fn scale(page_size: usize, row: usize) -> usize {
    (CONTENT_DIM + ROW_BYTES) * page_size + row * 4
}
