use std::ptr::null;

use snapmla::abi::k_append::snapmla_k_append;
use snapmla::abi::types::*;

use crate::fixture::*;

const TOKENS: i64 = 3;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let (content, rope, slots) = (Memory::zeroed(3 * 1024), Memory::zeroed(3 * 128), Memory::zeroed(24));
    // Distinct slots; the CPU backend works on them when a call does get through.
    // SAFETY: 24 bytes, aligned.
    unsafe { slots.ptr::<[i64; 3]>().write([1, -1, 2]) };
    let valid = snapmla_k_append_params {
        dtype: SNAPMLA_DTYPE_BF16,
        layer: 1,
        num_tokens: TOKENS,
        content: content.ptr(),
        rope: rope.ptr(),
        slots: slots.ptr(),
        ..zeroed()
    };
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call = |params: &snapmla_k_append_params| unsafe {
        snapmla_k_append(fixture.context, fixture.cache, params, NO_STREAM)
    };
    refuses(
        valid,
        &[],
        call,
        &[
            (|p| p.flags = 1, "flags 0x1 has bits other than 0x0"),
            (|p| p.layer = 2, "layer 2 is not in 0..2"),
            (|p| p.layer = SNAPMLA_ALL_LAYERS, "layer -1 is not in 0..2"),
            (|p| p.dtype = 0, "dtype 0 is none of 1 (BF16), 2 (F16), 3 (F32)"),
            (|p| p.dtype = SNAPMLA_DTYPE_QUANTISED, "dtype 4 is none of"),
            (|p| p.num_tokens = -1, "num_tokens -1 is less than 0"),
            (|p| p.content = null(), "content is NULL, but num_tokens is 3"),
            (|p| p.rope = null(), "rope is NULL, but num_tokens is 3"),
            (|p| p.slots = null(), "slots is NULL, but num_tokens is 3"),
            (|p| p.content = p.content.wrapping_byte_add(1), "content 0x…01 is not a multiple of 2"),
            (|p| p.rope = p.rope.wrapping_byte_add(1), "rope 0x…01 is not a multiple of 2"),
            (|p| p.slots = p.slots.wrapping_byte_add(4), "slots 0x…04 is not a multiple of 8"),
            (|p| p.content_stride = 1022, "content_stride 1022 is less than 1024"),
            (|p| p.content_stride = -1024, "content_stride -1024 is less than 1024"),
            (|p| p.content_stride = 1025, "content_stride 1025 is not a multiple of 2"),
            (|p| p.rope_stride = 64, "rope_stride 64 is less than 128"),
            (|p| p.rope_stride = i64::MAX - 1, "rope_stride 9223372036854775806 * 3 entries overflows 64 bits"),
            (|p| p.num_tokens = i64::MAX / 8, "content_stride 1024 * 1152921504606846975 entries overflows 64 bits"),
        ],
    );
    accepts(
        valid,
        call,
        &[
            |p| (p.num_tokens, p.content, p.rope, p.slots) = (0, null(), null(), null()),
            |p| (p.num_tokens, p.content_stride, p.rope_stride) = (1, 3, -5),
        ],
    );
    // SAFETY: live handles; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_k_append(fixture.context, fixture.cache, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_k_append(fixture.context, fixture.cache, &valid, some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}

#[test]
fn a_refused_append_leaves_the_cache_alone() {
    let fixture = Fixture::new();
    let before: Vec<u8> = bytes(&fixture).to_vec();
    let params = snapmla_k_append_params { num_tokens: 1, ..zeroed() };
    // SAFETY: live handles and a whole struct.
    let status = unsafe { snapmla_k_append(fixture.context, fixture.cache, &params, NO_STREAM) };
    assert_eq!((status, bytes(&fixture)), (SNAPMLA_STATUS_INVALID_ARGUMENT, &before[..]));
}

fn bytes(fixture: &Fixture) -> &[u8] {
    // SAFETY: the fixture's memory has as many bytes.
    unsafe { std::slice::from_raw_parts(fixture.memory.ptr(), 644 * 16 * 4 * 2) }
}
