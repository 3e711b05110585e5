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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every page size that a cache may have.
    fn page_sizes() -> impl Strategy<Value = usize> {
        (1usize..=128).prop_map(|eights| 8 * eights)
    }

    /// The byte ranges that hold one record, in the order of its dims.
    fn parts(page_size: usize, row: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let content = (0..CONTENT_DIM / CHUNK_BYTES).map(move |chunk| content_chunk(page_size, row, chunk));
        let rope = (0..ROW_BYTES / CHUNK_BYTES).map(move |chunk| rope_chunk(page_size, row, chunk));
        let at = scale(page_size, row);
        content.chain(rope).map(|at| at..at + CHUNK_BYTES).chain(std::iter::once(at..at + 4))
    }

    proptest! {
        #[test]
        fn every_byte_of_a_page_belongs_to_one_record(page_size in page_sizes()) {
            let mut owners = vec![0u8; page_bytes(page_size)];
            for row in 0..page_size {
                for byte in parts(page_size, row).flatten() {
                    owners[byte] += 1;
                }
            }
            prop_assert!(owners.iter().all(|&count| count == 1));
        }

        #[test]
        fn the_swizzle_undoes_itself_and_stays_in_its_row(row in 0usize..4096, chunk in 0usize..8) {
            prop_assert!(swizzle(row, chunk) < 8);
            prop_assert_eq!(swizzle(row, swizzle(row, chunk)), chunk);
        }

        #[test]
        fn eight_rows_spread_a_chunk_over_all_banks(first in 0usize..512, chunk in 0usize..8) {
            let mut places: Vec<usize> = (8 * first..8 * first + 8).map(|row| swizzle(row, chunk)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..8).collect::<Vec<_>>());
        }

        #[test]
        fn parts_are_aligned_as_they_are_loaded(page_size in page_sizes(), row in 0usize..1024) {
            let row = row % page_size;
            for part in parts(page_size, row) {
                prop_assert_eq!(part.start % part.len(), 0);
            }
        }

        #[test]
        fn regions_keep_their_order(page_size in page_sizes(), row in 0usize..1024, chunk in 0usize..32) {
            let row = row % page_size;
            let content = content_chunk(page_size, row, chunk);
            prop_assert!(content + CHUNK_BYTES <= CONTENT_DIM * page_size);
            prop_assert_eq!(content / ROW_BYTES, chunk / 8 * page_size + row);
            let rope = rope_chunk(page_size, row, chunk % 8);
            prop_assert!((CONTENT_DIM * page_size..640 * page_size).contains(&rope));
            prop_assert!((640 * page_size..page_bytes(page_size)).contains(&scale(page_size, row)));
        }
    }
}
