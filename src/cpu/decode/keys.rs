//! Where the tokens of the call's sequences lie: in the pages of a block table, or in slots listed one by one.

use crate::cpu::page::{Pages, Record};
use crate::cpu::table::BlockTable;
use crate::error::{Error, Result};
use crate::request::{CacheView, DecodeRequest, Rows};

/// The call's cached tokens, by sequence and position.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    pages: Pages,
    places: Places,
}

#[derive(Debug, Clone, Copy)]
enum Places {
    Table(BlockTable),
    Slots(SlotLists),
}

impl Keys {
    pub fn new(request: &DecodeRequest) -> Self {
        let places = if request.slots.ptr.is_null() {
            Places::Table(BlockTable::new(request.block_table, request.max_pages, &request.cache))
        } else {
            Places::Slots(SlotLists(request.slots))
        };
        Self { pages: Pages::new(&request.cache, request.layer), places }
    }

    /// Checks that the first `tokens` of `sequence` lie in the cache, and looks at no others.
    pub fn check(&self, cache: &CacheView, sequence: usize, tokens: usize) -> Result<()> {
        match self.places {
            Places::Table(table) => table.check(sequence, 0..tokens),
            Places::Slots(lists) => lists.check(cache, sequence, tokens),
        }
    }

    /// The records of a checked sequence from `first_token` on.
    pub fn cursor(&self, sequence: usize, first_token: usize) -> Cursor<'_> {
        let page_size = self.pages.page_size();
        match self.places {
            Places::Table(table) => {
                let (column, row) = (first_token / page_size, first_token % page_size);
                Cursor::Table { pages: &self.pages, table, sequence, column, row, page: table.page(sequence, column) }
            }
            Places::Slots(lists) => Cursor::Slots { pages: &self.pages, lists, sequence, token: first_token },
        }
    }
}

pub enum Cursor<'a> {
    Table { pages: &'a Pages, table: BlockTable, sequence: usize, column: usize, row: usize, page: i32 },
    Slots { pages: &'a Pages, lists: SlotLists, sequence: usize, token: usize },
}

impl Cursor<'_> {
    /// The next token's record. Not past the sequence's end.
    #[inline(always)]
    pub fn next(&mut self) -> Record {
        match self {
            Self::Table { pages, table, sequence, column, row, page } => {
                if *row == pages.page_size() {
                    (*column, *row) = (*column + 1, 0);
                    *page = table.page(*sequence, *column);
                }
                *row += 1;
                pages.record((*page).into(), *row - 1)
            }
            Self::Slots { pages, lists, sequence, token } => {
                *token += 1;
                pages.slot(lists.slot(*sequence, *token - 1))
            }
        }
    }
}

/// A caller's lists of slots, a row a sequence.
#[derive(Debug, Clone, Copy)]
pub struct SlotLists(Rows<*const i64>);

impl SlotLists {
    fn check(&self, cache: &CacheView, sequence: usize, tokens: usize) -> Result<()> {
        let end = cache.num_slots();
        let wrong = (0..tokens).find(|&token| !(0..end).contains(&self.slot(sequence, token)));
        wrong.map_or(Ok(()), |token| {
            Err(Error::invalid(format!(
                "slots[{sequence}][{token}] is {}, not in 0..{end} = num_pages {} * page_size {}",
                self.slot(sequence, token),
                cache.num_pages,
                cache.page_size
            )))
        })
    }

    #[inline(always)]
    fn slot(&self, sequence: usize, token: usize) -> i64 {
        let row = self.0.ptr.wrapping_byte_offset(sequence as isize * self.0.stride as isize);
        // SAFETY: the caller's list has an entry for every token below the cut, and none past that is asked for.
        unsafe { row.add(token).read_unaligned() }
    }
}
