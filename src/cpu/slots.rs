//! Callers' lists of slots.

use crate::error::{Error, Result};
use crate::request::CacheView;

/// `n` slots, in the caller's memory.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    ptr: *const i64,
    n: usize,
}

impl Slots {
    /// Checks every slot against the cache's end, so that nothing has been written when one is wrong.
    ///
    /// # Safety
    /// `ptr` holds `n` slots until the value's last use.
    pub unsafe fn checked(name: &str, ptr: *const i64, n: i64, cache: &CacheView) -> Result<Self> {
        let slots = Self { ptr, n: n.max(0) as usize };
        let end = cache.num_slots();
        match (0..slots.n).map(|i| slots.raw(i)).enumerate().find(|&(_, slot)| slot >= end) {
            None => Ok(slots),
            Some((i, slot)) => Err(Error::invalid(format!(
                "{name}[{i}] is {slot}, not below {end} = num_pages {} * page_size {}",
                cache.num_pages, cache.page_size
            ))),
        }
    }

    pub fn len(&self) -> usize {
        self.n
    }

    /// Slot `i`, unless it says skip.
    pub fn get(&self, i: usize) -> Option<i64> {
        Some(self.raw(i)).filter(|&slot| slot >= 0)
    }

    fn raw(&self, i: usize) -> i64 {
        debug_assert!(i < self.n);
        // SAFETY: whoever made the value vouched for `n` slots.
        unsafe { self.ptr.add(i).read_unaligned() }
    }
}
