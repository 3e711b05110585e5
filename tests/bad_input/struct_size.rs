//! `struct_size`, through every function that takes a struct: older, newer, and never set.

use std::ptr::null_mut;

use snapmla::abi::cache::*;
use snapmla::abi::context::*;
use snapmla::abi::decode::*;
use snapmla::abi::fetch::*;
use snapmla::abi::k_append::*;
use snapmla::abi::merge::*;
use snapmla::abi::q_quant::*;
use snapmla::abi::records_copy::*;
use snapmla::abi::released::AbiStruct;
use snapmla::abi::support::*;
use snapmla::abi::types::*;

use crate::fixture::*;

/// A struct as a caller with a newer header would have it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Newer<P> {
    params: P,
    appended: [u8; 16],
}

fn set_size<P>(params: &mut P, size: usize) {
    // SAFETY: every struct of the ABI begins with struct_size.
    unsafe { std::ptr::from_mut(params).cast::<u32>().write(size as u32) };
}

/// `call` must take the struct it is given a pointer to; `accepted` is what it answers once the size is fine.
fn sizes<P: AbiStruct>(name: &str, call: impl Fn(*const P) -> snapmla_status, accepted: snapmla_status) {
    let (size, first) = (size_of::<P>(), P::FIRST_SIZE);
    let mut newer = Newer { params: zeroed::<P>(), appended: [0; 16] };
    assert_eq!(call(&newer.params), accepted, "{}", message());
    for old in [first, size] {
        set_size(&mut newer.params, old);
        assert_eq!(call(&newer.params), accepted, "{}", message());
    }
    for small in [0, 4, first - 1] {
        set_size(&mut newer.params, small);
        let says = format!("{name}->struct_size {small} is less than {first} = sizeof(struct snapmla_");
        assert_refused(call(&newer.params), SNAPMLA_STATUS_INVALID_ARGUMENT, &says);
    }
    for garbage in [4097, u32::MAX as usize] {
        set_size(&mut newer.params, garbage);
        let says = format!("{name}->struct_size {garbage} is more than 4096");
        assert_refused(call(&newer.params), SNAPMLA_STATUS_INVALID_ARGUMENT, &says);
    }
    set_size(&mut newer.params, size + 16);
    assert_eq!(call((&raw const newer).cast()), accepted, "zeros ask for nothing: {}", message());
    newer.appended[15] = 1;
    let says = format!("{name}->struct_size {} is more than {size} = sizeof(struct snapmla_", size + 16);
    assert_refused(call((&raw const newer).cast()), SNAPMLA_STATUS_VERSION_MISMATCH, &says);
}

#[test]
fn of_every_struct() {
    const OK: snapmla_status = SNAPMLA_STATUS_OK;
    const WRONG: snapmla_status = SNAPMLA_STATUS_INVALID_ARGUMENT;
    let fixture = Fixture::new();
    let (context, cache) = (fixture.context, fixture.cache);
    let mut size = 0;
    let place: *mut u64 = &mut size;
    // SAFETY: live handles; structs of the size they say, or refused before more than that is read.
    unsafe {
        sizes("params", |p| snapmla_cache_size(p, place), WRONG);
        sizes("params", |p| snapmla_cache_init(context, p, NO_STREAM, &mut null_mut()), WRONG);
        sizes("params", |p| snapmla_k_append(context, cache, p, NO_STREAM), WRONG);
        sizes("params", |p| snapmla_q_quant(context, p, NO_STREAM), WRONG);
        sizes("params", |p| snapmla_records_copy(context, cache, p, NO_STREAM), OK);
        sizes("limits", |p| snapmla_decode_workspace_size(context, p, place), WRONG);
        sizes("params", |p| snapmla_decode(context, cache, p, NO_STREAM), WRONG);
        sizes("params", |p| snapmla_fetch_dequant(context, cache, p, NO_STREAM), WRONG);
        sizes("params", |p| snapmla_merge(context, p, NO_STREAM), WRONG);
        sizes("query", |p| snapmla_supports(context, p), SNAPMLA_STATUS_UNSUPPORTED);
        let create = |p| {
            let mut context = null_mut();
            let status = snapmla_context_create(p, &mut context);
            assert_ok(snapmla_context_destroy(context));
            status
        };
        sizes("params", create, OK);
    }
}

#[test]
fn of_what_is_written() {
    let fixture = Fixture::new();
    let mut newer = Newer { params: zeroed::<snapmla_context_info>(), appended: [9; 16] };
    set_size(&mut newer.params, size_of::<Newer<snapmla_context_info>>());
    // SAFETY: a live handle and a struct of the size it says.
    assert_ok(unsafe { snapmla_context_describe(fixture.context, (&raw mut newer).cast()) });
    assert_eq!((newer.params.backend, newer.appended), (SNAPMLA_BACKEND_CPU, [9; 16]));
    assert_eq!(newer.params.struct_size as usize, size_of_val(&newer));
    set_size(&mut newer.params, 143);
    newer.params.backend = 7;
    // SAFETY: as above.
    let status = unsafe { snapmla_context_describe(fixture.context, &mut newer.params) };
    assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "info->struct_size 143 is less than 144");
    assert_eq!(newer.params.backend, 7);
}
