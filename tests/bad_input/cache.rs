use std::ptr::{null, null_mut, without_provenance_mut};

use snapmla::abi::cache::*;
use snapmla::abi::types::*;

use crate::fixture::*;

const PAGE: i64 = 644 * PAGE_SIZE as i64;
const SIZE: u64 = PAGE as u64 * PAGES as u64 * LAYERS as u64;

const GEOMETRY: &[Case<snapmla_cache_params>] = &[
    (|p| p.flags = 6, "flags 0x6 has bits other than 0x1"),
    (|p| p.page_size = 0, "page_size 0 is not a multiple of 8 from 8 to 1024"),
    (|p| p.page_size = 12, "page_size 12 is not a multiple of 8"),
    (|p| p.page_size = 1032, "page_size 1032 is not a multiple of 8 from 8 to 1024"),
    (|p| p.num_layers = 0, "num_layers is 0"),
    (|p| p.num_layers = 1 << 31, "num_layers 2147483648 is more than 2147483647"),
    (|p| p.num_pages = 0, "num_pages 0 is not in 1..=2147483647"),
    (|p| p.num_pages = -3, "num_pages -3 is not in"),
    (|p| p.num_pages = 1 << 31, "num_pages 2147483648 is not in"),
    (|p| p.page_stride = 1000, "page_stride 1000 is less than 10304 = 644 * page_size"),
    (|p| p.page_stride = -16, "page_stride -16 is less than 10304"),
    (|p| p.page_stride = PAGE + 8, "page_stride 10312 is not a multiple of 16"),
    (|p| p.page_stride = i64::MAX - 15, "num_pages 4 * page_stride 9223372036854775792 overflows 64 bits"),
    (|p| p.layer_stride = 8, "layer_stride 8 is not a multiple of 16"),
    (|p| p.layer_stride = -16, "layer_stride -16 is less than 10304"),
    (|p| p.layer_stride = 16, "layer_stride 16 is less than 10304"),
    (
        |p| p.layer_stride = PAGE,
        "layer_stride 10304 is less than 41216, the span of a layer's pages, and page_stride 10304 is less than 20608",
    ),
    (|p| p.layer_stride = 4 * PAGE - 16, "layer_stride 41200 is less than 41216"),
    (|p| (p.num_layers, p.layer_stride) = (3, i64::MAX - 15), "num_layers 3 * layer_stride 9223372036854775792"),
];

#[test]
fn size_refuses() {
    let size = |params: &snapmla_cache_params| {
        let mut size = 77;
        // SAFETY: a whole struct and a place for the size.
        let status = unsafe { snapmla_cache_size(params, &mut size) };
        assert_eq!(size, if status == SNAPMLA_STATUS_OK { SIZE } else { 77 });
        status
    };
    refuses(cache_params(), &[], size, GEOMETRY);
    // SAFETY: NULL is part of the contract.
    unsafe {
        let mut size = 77;
        let status = snapmla_cache_size(null(), &mut size);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_cache_size(&cache_params(), null_mut());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "size is NULL");
    }
}

#[test]
fn init_refuses() {
    let context = cpu_context();
    let memory = Memory::new(SIZE as usize);
    let valid = snapmla_cache_params { memory: memory.ptr(), memory_size: SIZE, ..cache_params() };
    let init = |params: &snapmla_cache_params| {
        let mut cache = without_provenance_mut(0x40);
        // SAFETY: a live handle, a whole struct, and a place for the handle.
        let status = unsafe { snapmla_cache_init(context, params, NO_STREAM, &mut cache) };
        assert_eq!(status == SNAPMLA_STATUS_OK, !cache.is_null(), "NULL on failure and only then");
        // SAFETY: NULL or a live handle.
        assert_ok_after(status, unsafe { snapmla_cache_destroy(cache) })
    };
    let on_memory: &[Case<snapmla_cache_params>] = &[
        (|p| p.memory = null_mut(), "memory is NULL, but num_pages is 4"),
        (|p| p.memory = p.memory.wrapping_byte_add(8), "memory 0x…8 is not a multiple of 16"),
        (|p| p.memory_size -= 1, "memory_size 82431 is less than 82432"),
        (|p| p.num_pages = 5, "memory_size 82432 is less than 103040"),
    ];
    refuses(valid, &[&memory], init, on_memory);
    assert!(!memory.untouched(), "the pages are zero-filled");
    let kept = Memory::new(SIZE as usize);
    let valid = snapmla_cache_params { memory: kept.ptr(), flags: SNAPMLA_CACHE_KEEP_CONTENTS, ..valid };
    refuses(valid, &[&kept], init, GEOMETRY);
    assert!(kept.untouched(), "the pages are kept");
    // SAFETY: a live handle; NULL and a stream are part of the contract.
    unsafe {
        let mut cache = null_mut();
        let status = snapmla_cache_init(context, &valid, some_stream(), &mut cache);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
        let status = snapmla_cache_init(context, &valid, NO_STREAM, null_mut());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "out is NULL");
        let status = snapmla_cache_init(null_mut(), &valid, NO_STREAM, &mut cache);
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "context is NULL");
    }
}

#[test]
fn layers_outside_and_inside_pages() {
    let size = |params: &snapmla_cache_params| {
        let mut size = 0;
        // SAFETY: a whole struct and a place for the size.
        unsafe { snapmla_cache_size(params, &mut size) }
    };
    accepts(
        cache_params(),
        size,
        &[
            |p| p.page_stride = PAGE + 16,
            |p| p.layer_stride = 4 * PAGE,
            |p| (p.page_stride, p.layer_stride) = (2 * PAGE, PAGE),
            |p| (p.num_layers, p.layer_stride) = (1, 48),
            |p| (p.num_pages, p.layer_stride) = (1, PAGE),
            |p| (p.num_pages, p.page_size) = (i64::from(i32::MAX), 1024),
        ],
    );
}

/// Destroying succeeds, and does not hide how making went.
fn assert_ok_after(made: snapmla_status, destroyed: snapmla_status) -> snapmla_status {
    assert_ok(destroyed);
    made
}
