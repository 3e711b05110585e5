//! The launch path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::harness::{cuda, with_fake_driver};
use crate::{decode, launching};

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
        let (append, decode) = (launching::request(128), decode::request(32, 2, 128, 65_536));
        let before = ALLOCATIONS.get();
        cuda.k_append(&append, std::ptr::null_mut()).unwrap();
        cuda.decode(&decode, std::ptr::null_mut()).unwrap();
        assert_eq!(ALLOCATIONS.get() - before, 0);
        assert_eq!(fake.num_launches(), 2);
    }
}
