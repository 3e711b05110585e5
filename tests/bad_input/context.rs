use std::ptr::{null, null_mut, without_provenance_mut};

use snapmla::abi::context::*;
use snapmla::abi::types::*;

use crate::fixture::*;

fn params() -> snapmla_context_params {
    snapmla_context_params { backend: SNAPMLA_BACKEND_CPU, cpu_threads: 1, ..zeroed() }
}

/// Creates and destroys.
fn create(params: &snapmla_context_params) -> snapmla_status {
    let mut context = without_provenance_mut(0x40);
    // SAFETY: a whole struct and a place for the handle.
    let status = unsafe { snapmla_context_create(params, &mut context) };
    assert_eq!(status == SNAPMLA_STATUS_OK, !context.is_null(), "NULL on failure and only then");
    // SAFETY: NULL or a live handle.
    assert_eq!(unsafe { snapmla_context_destroy(context) }, SNAPMLA_STATUS_OK);
    status
}

#[test]
fn create_refuses() {
    refuses(
        params(),
        &[],
        create,
        &[
            (|p| p.flags = 2, "flags 0x2 has bits other than 0x1"),
            (|p| p.backend = 3, "backend 3 is none of 0 (AUTO), 1 (CPU), 2 (CUDA)"),
            (|p| p.cpu_threads = 4097, "cpu_threads 4097 is more than 4096"),
            (|p| (p.backend, p.device_ordinal) = (SNAPMLA_BACKEND_AUTO, -1), "device_ordinal -1 is less than 0"),
            (|p| (p.backend, p.device_ordinal) = (SNAPMLA_BACKEND_CUDA, -1), "device_ordinal -1 is less than 0"),
        ],
    );
}

#[test]
fn create_accepts() {
    accepts(params(), create, &[|p| p.device_ordinal = -1, |p| p.flags = SNAPMLA_CONTEXT_CHECK_POINTERS]);
}

#[test]
fn nulls() {
    let context = cpu_context();
    // SAFETY: NULL is part of the contract.
    unsafe {
        let mut out = without_provenance_mut(0x40);
        assert_refused(snapmla_context_create(null(), &mut out), SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        assert!(out.is_null());
        assert_refused(snapmla_context_create(&params(), null_mut()), SNAPMLA_STATUS_INVALID_ARGUMENT, "out is NULL");
        let status = snapmla_context_describe(context, null_mut());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "info is NULL");
        assert_ok(snapmla_context_destroy(context));
        assert_ok(snapmla_context_destroy(null_mut()));
    }
}

#[test]
fn availability() {
    assert_ok(snapmla_backend_available(SNAPMLA_BACKEND_CPU, -5));
    assert_ok(snapmla_backend_available(SNAPMLA_BACKEND_AUTO, 0));
    assert_refused(snapmla_backend_available(7, 0), SNAPMLA_STATUS_INVALID_ARGUMENT, "backend 7");
    let status = snapmla_backend_available(SNAPMLA_BACKEND_CUDA, -1);
    assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "device_ordinal -1");
}
