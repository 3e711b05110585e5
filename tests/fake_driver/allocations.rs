//! The launch path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::harness::{cuda, with_fake_driver};
use crate::launching;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator, with a count on the side.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

with_fake_driver! {
    fn a_launch_allocates_nothing(fake) {
        let cuda = cuda();
        let request = launching::request(128);
        let before = ALLOCATIONS.get();
        cuda.k_append(&request, std::ptr::null_mut()).unwrap();
        assert_eq!(ALLOCATIONS.get() - before, 0);
        assert_eq!(fake.num_launches(), 1);
    }
}
