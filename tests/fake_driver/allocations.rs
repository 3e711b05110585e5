//! The launch path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{cuda, with_fake_driver};
use crate::launching;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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
        // The test harness's main thread allocates nothing either while it waits, but may just be starting.
        let counts = [(); 3].map(|()| {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for _ in 0..10 {
                cuda.k_append(&request, std::ptr::null_mut()).unwrap();
            }
            ALLOCATIONS.load(Ordering::Relaxed) - before
        });
        assert!(counts.contains(&0), "{counts:?}");
        assert_eq!(fake.num_launches(), 30);
    }
}
