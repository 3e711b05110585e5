//! Callers' block tables and prefix sums.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::request::{CacheView, Rows};

/// The block table of a call.
#[derive(Debug, Clone, Copy)]
pub struct BlockTable {
    rows: Rows<*const i32>,
    columns: u32,
    page_size: usize,
    num_pages: i64,
}

impl BlockTable {
    pub fn new(rows: Rows<*const i32>, columns: u32, cache: &CacheView) -> Self {
        Self { rows, columns, page_size: cache.page_size, num_pages: cache.num_pages }
    }

    /// Checks the entries that hold `tokens` of `sequence`, and looks at no other.
    pub fn check(&self, sequence: usize, tokens: Range<usize>) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        if (tokens.end - 1) / self.page_size >= self.columns as usize {
            return Err(Error::invalid(format!(
                "sequence {sequence} ends at token {}, past max_pages {} * page_size {}",
                tokens.end, self.columns, self.page_size
            )));
        }
        for column in tokens.start / self.page_size..=(tokens.end - 1) / self.page_size {
            let page = self.page(sequence, column);
            if i64::from(page) >= self.num_pages || page < 0 {
                return Err(Error::invalid(format!(
                    "block_table[{sequence}][{column}] is page {page}, not in 0..num_pages {}",
                    self.num_pages
                )));
            }
        }
        Ok(())
    }

    /// The page in a column that exists.
    pub fn page(&self, sequence: usize, column: usize) -> i32 {
        debug_assert!(column < self.columns as usize);
        let row = self.rows.ptr.wrapping_byte_offset(sequence as isize * self.rows.stride as isize);
        // SAFETY: the caller's table has `columns` entries in every sequence's row.
        unsafe { row.add(column).read_unaligned() }
    }
}

/// Entry `i` of a caller's prefix sums.
pub fn prefix_sum(sums: *const i32, i: usize) -> i32 {
    // SAFETY: the caller's array has an entry more than there are sequences.
    unsafe { sums.add(i).read_unaligned() }
}
