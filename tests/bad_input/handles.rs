//! Handles that are not what they should be, and handles that many threads use.

use std::ptr::{null, null_mut};

use snapmla::abi::cache::*;
use snapmla::abi::context::*;
use snapmla::abi::decode::*;
use snapmla::abi::fetch::*;
use snapmla::abi::k_append::*;
use snapmla::abi::merge::*;
use snapmla::abi::q_quant::*;
use snapmla::abi::records_copy::*;
use snapmla::abi::support::*;
use snapmla::abi::types::*;

use crate::fixture::*;

/// Every call that takes a context, in turn; params are never reached.
fn calls_on(context: *mut snapmla_context, cache: *mut snapmla_cache) -> Vec<snapmla_status> {
    let mut size = 0;
    let mut out = null_mut();
    let mut info: snapmla_context_info = zeroed();
    // SAFETY: handles, live or destroyed, and NULL, all part of the contract.
    unsafe {
        vec![
            snapmla_context_describe(context, &mut info),
            snapmla_supports(context, null()),
            snapmla_cache_init(context, null(), NO_STREAM, &mut out),
            snapmla_k_append(context, cache, null(), NO_STREAM),
            snapmla_q_quant(context, null(), NO_STREAM),
            snapmla_records_copy(context, cache, null(), NO_STREAM),
            snapmla_decode_workspace_size(context, null(), &mut size),
            snapmla_decode(context, cache, null(), NO_STREAM),
            snapmla_fetch_dequant(context, cache, null(), NO_STREAM),
            snapmla_merge(context, null(), NO_STREAM),
        ]
    }
}

/// Every call that takes a cache, in turn.
fn calls_with(context: *mut snapmla_context, cache: *mut snapmla_cache) -> Vec<snapmla_status> {
    // SAFETY: as above.
    unsafe {
        vec![
            snapmla_k_append(context, cache, null(), NO_STREAM),
            snapmla_records_copy(context, cache, null(), NO_STREAM),
            snapmla_decode(context, cache, null(), NO_STREAM),
            snapmla_fetch_dequant(context, cache, null(), NO_STREAM),
        ]
    }
}

#[test]
fn a_destroyed_context_is_told() {
    let fixture = Fixture::new();
    let context = cpu_context();
    // SAFETY: a handle, live and then destroyed.
    unsafe {
        assert_ok(snapmla_context_destroy(context));
        let status = snapmla_context_destroy(context);
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "has been destroyed");
    }
    for status in calls_on(context, fixture.cache) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, &format!("context {context:p} has been destroyed"));
    }
    for status in calls_on(null_mut(), fixture.cache) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "context is NULL");
    }
    for status in calls_on(fixture.cache.cast(), fixture.cache) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "is not a handle of this kind");
    }
}

#[test]
fn a_destroyed_cache_is_told() {
    let fixture = Fixture::new();
    let params = snapmla_cache_params {
        memory: fixture.memory.ptr(),
        memory_size: 644 * 16 * 4 * 2,
        flags: SNAPMLA_CACHE_KEEP_CONTENTS,
        ..cache_params()
    };
    let mut cache = null_mut();
    // SAFETY: a handle, live and then destroyed.
    unsafe {
        assert_ok(snapmla_cache_init(fixture.context, &params, NO_STREAM, &mut cache));
        assert_ok(snapmla_cache_destroy(cache));
        assert_refused(snapmla_cache_destroy(cache), SNAPMLA_STATUS_INVALID_HANDLE, "has been destroyed");
    }
    for status in calls_with(fixture.context, cache) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, &format!("cache {cache:p} has been destroyed"));
    }
    for status in calls_with(fixture.context, null_mut()) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "cache is NULL");
    }
    for status in calls_with(fixture.context, fixture.context.cast()) {
        assert_refused(status, SNAPMLA_STATUS_INVALID_HANDLE, "is not a handle of this kind");
    }
}

#[test]
fn a_cache_belongs_to_its_context() {
    let (one, two) = (Fixture::new(), Fixture::new());
    for status in calls_with(one.context, two.cache) {
        let says = format!("cache {:p} was made with another context than {:p}", two.cache, one.context);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, &says);
    }
}

#[test]
fn a_cache_may_outlive_its_context() {
    let context = cpu_context();
    let memory = Memory::new(644 * 16 * 4 * 2);
    let params = snapmla_cache_params { memory: memory.ptr(), memory_size: 644 * 16 * 4 * 2, ..cache_params() };
    let mut cache = null_mut();
    // SAFETY: handles, live and then destroyed.
    unsafe {
        assert_ok(snapmla_cache_init(context, &params, NO_STREAM, &mut cache));
        assert_ok(snapmla_context_destroy(context));
        assert_ok(snapmla_cache_destroy(cache));
    }
}

#[test]
fn messages_are_the_threads_own() {
    let fixture = Fixture::new();
    assert_refused(snapmla_backend_available(77, 0), SNAPMLA_STATUS_INVALID_ARGUMENT, "backend 77");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(message(), "");
            assert_refused(snapmla_backend_available(78, 0), SNAPMLA_STATUS_INVALID_ARGUMENT, "backend 78");
        });
    });
    // SAFETY: a live handle and a whole struct.
    assert_ok(unsafe { snapmla_context_describe(fixture.context, &mut zeroed()) });
    assert!(message().contains("backend 77"), "success keeps it");
}

#[test]
fn eight_threads_share_a_context_and_a_cache() {
    let fixture = Fixture::new();
    let (context, cache) = (fixture.context as usize, fixture.cache as usize);
    std::thread::scope(|scope| {
        for thread in 0..8_i64 {
            scope.spawn(move || {
                let (context, cache) = (context as *mut snapmla_context, cache as *mut snapmla_cache);
                let mut content = [0.0_f32; 512];
                let rope = [thread as f32; 64];
                for round in 0..100_i64 {
                    content.fill((thread * 100 + round) as f32);
                    let slot = thread * 2 + round % 2;
                    let append = snapmla_k_append_params {
                        dtype: SNAPMLA_DTYPE_F32,
                        num_tokens: 1,
                        content: content.as_ptr().cast(),
                        rope: rope.as_ptr().cast(),
                        slots: &slot,
                        ..zeroed()
                    };
                    let mut read = [0.0_f32; 512];
                    let fetch = snapmla_fetch_params {
                        dtype: SNAPMLA_DTYPE_F32,
                        num_tokens: 1,
                        slots: &slot,
                        content: read.as_mut_ptr().cast(),
                        ..zeroed()
                    };
                    // SAFETY: live handles, and structs whose arrays are as large as they say. Slots of this thread.
                    unsafe {
                        assert_ok(snapmla_k_append(context, cache, &append, NO_STREAM));
                        assert_ok(snapmla_fetch_dequant(context, cache, &fetch, NO_STREAM));
                    }
                    // All are the row's largest, which E4M3 keeps: 448 times the scale.
                    assert!(read.iter().zip(content).all(|(got, put)| (got - put).abs() <= put * 1e-6));
                }
            });
        }
    });
}
