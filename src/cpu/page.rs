//! Records in the pages of one layer.

use super::row::QuantisedRow;
use crate::layout::{self, CHUNK_BYTES, CONTENT_DIM, ROW_BYTES};
use crate::request::CacheView;

/// The pages of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    base: *mut u8,
    stride: i64,
    page_size: usize,
}

impl Pages {
    pub fn new(cache: &CacheView, layer: usize) -> Self {
        Self { base: cache.layer_base(layer), stride: cache.page_stride, page_size: cache.page_size }
    }

    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The record at `slot`, which lies in the cache.
    pub fn slot(&self, slot: i64) -> Record {
        let page_size = self.page_size as i64;
        self.record(slot / page_size, (slot % page_size) as usize)
    }

    /// The record in row `row` of `page`, which lies in the cache.
    pub fn record(&self, page: i64, row: usize) -> Record {
        Record { page: self.base.wrapping_offset((page * self.stride) as isize), page_size: self.page_size, row }
    }
}

/// Where one record lies.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    page: *mut u8,
    page_size: usize,
    row: usize,
}

impl Record {
    /// The 128-byte row that holds column block `block` of the content, its chunks swizzled.
    pub fn content_block(&self, block: usize) -> *mut u8 {
        self.page.wrapping_add((block * self.page_size + self.row) * ROW_BYTES)
    }

    /// The 128-byte row that holds the rope, its chunks swizzled.
    pub fn rope(&self) -> *mut u8 {
        self.page.wrapping_add(CONTENT_DIM * self.page_size + self.row * ROW_BYTES)
    }

    /// Row number in the page, which decides the swizzle.
    pub fn row(&self) -> usize {
        self.row
    }

    /// # Safety
    /// The record lies in live memory that no other thread writes.
    pub unsafe fn scale(&self) -> f32 {
        // SAFETY: as the caller vouches.
        unsafe { self.page.add(layout::scale(self.page_size, self.row)).cast::<f32>().read_unaligned() }
    }

    /// # Safety
    /// The record lies in live memory that no other thread writes.
    pub unsafe fn read(&self, to: &mut QuantisedRow) {
        let rope = to.rope.as_mut_ptr().cast::<u8>();
        // SAFETY: as the caller vouches; the chunks are 32 of the content's 512 bytes and 8 of the rope's 128.
        unsafe {
            for (chunk, to) in to.content.chunks_exact_mut(CHUNK_BYTES).enumerate() {
                let from = self.page.add(layout::content_chunk(self.page_size, self.row, chunk));
                from.copy_to_nonoverlapping(to.as_mut_ptr(), CHUNK_BYTES);
            }
            for chunk in 0..ROW_BYTES / CHUNK_BYTES {
                let from = self.page.add(layout::rope_chunk(self.page_size, self.row, chunk));
                from.copy_to_nonoverlapping(rope.add(chunk * CHUNK_BYTES), CHUNK_BYTES);
            }
            to.scale = self.scale();
        }
    }

    /// # Safety
    /// The record lies in live memory that no other thread reads or writes.
    pub unsafe fn write(&self, row: &QuantisedRow) {
        let rope = row.rope.as_ptr().cast::<u8>();
        // SAFETY: as in `read`, the other way round.
        unsafe {
            for (chunk, from) in row.content.chunks_exact(CHUNK_BYTES).enumerate() {
                let to = self.page.add(layout::content_chunk(self.page_size, self.row, chunk));
                to.copy_from_nonoverlapping(from.as_ptr(), CHUNK_BYTES);
            }
            for chunk in 0..ROW_BYTES / CHUNK_BYTES {
                let to = self.page.add(layout::rope_chunk(self.page_size, self.row, chunk));
                to.copy_from_nonoverlapping(rope.add(chunk * CHUNK_BYTES), CHUNK_BYTES);
            }
            self.page.add(layout::scale(self.page_size, self.row)).cast::<f32>().write_unaligned(row.scale);
        }
    }
}
