use std::ptr::{null, null_mut};

use snapmla::abi::fetch::snapmla_fetch_dequant;
use snapmla::abi::types::*;

use crate::fixture::*;

const TOKENS: i64 = 3;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let (content, rope) = (Memory::new(3 * 2048 + 4), Memory::new(3 * 256 + 4));
    let (slots, table, cu_tokens) = ([0_i64, -1, 5], [0_i32, 1, 2, 3], [0_i32, 1, 3]);
    let by_slot = snapmla_fetch_params {
        dtype: SNAPMLA_DTYPE_F32,
        num_tokens: TOKENS,
        slots: slots.as_ptr(),
        content: content.ptr(),
        rope: rope.ptr(),
        ..zeroed()
    };
    let by_table = snapmla_fetch_params {
        slots: null(),
        block_table: table.as_ptr(),
        max_pages: 2,
        batch: 2,
        cu_tokens: cu_tokens.as_ptr(),
        ..by_slot
    };
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call = |params: &snapmla_fetch_params| unsafe {
        snapmla_fetch_dequant(fixture.context, fixture.cache, params, NO_STREAM)
    };
    let cases: &[Case<snapmla_fetch_params>] = &[
        (|p| p.flags = 1, "flags 0x1"),
        (|p| p.layer = 2, "layer 2 is not in 0..2"),
        (|p| p.layer = SNAPMLA_ALL_LAYERS, "layer -1 is not in 0..2"),
        (|p| p.dtype = SNAPMLA_DTYPE_QUANTISED, "dtype 4 is none of"),
        (|p| p.num_tokens = -1, "num_tokens -1 is less than 0"),
        (|p| p.slots = null(), "slots and block_table are both NULL, but num_tokens is 3"),
        (|p| p.slots = p.slots.wrapping_byte_add(4), "slots 0x…is not a multiple of 8"),
        (|p| p.block_table = p.slots.cast(), "are both given"),
        (|p| (p.content, p.rope) = (null_mut(), null_mut()), "content and rope are both NULL, but num_tokens is 3"),
        (|p| p.content = p.content.wrapping_byte_add(2), "content 0x…02 is not a multiple of 4"),
        (|p| p.rope = p.rope.wrapping_byte_add(2), "rope 0x…02 is not a multiple of 4"),
        (|p| p.content_stride = 512, "content_stride 512 is less than 2048"),
        (|p| p.content_stride = 2050, "content_stride 2050 is not a multiple of 4"),
        (|p| p.rope_stride = -256, "rope_stride -256 is less than 256"),
        (|p| p.num_tokens = i64::MAX, "content_stride 2048 * 9223372036854775807 entries overflows 64 bits"),
    ];
    refuses(by_slot, &[&content, &rope], call, cases);
    let (content, rope) = (Memory::new(3 * 2048), Memory::new(3 * 256));
    refuses(
        snapmla_fetch_params { content: content.ptr(), rope: rope.ptr(), ..by_table },
        &[&content, &rope],
        call,
        &[
            (|p| p.cu_tokens = null(), "cu_tokens is NULL, but batch is 2"),
            (|p| p.cu_tokens = p.cu_tokens.wrapping_byte_add(2), "cu_tokens 0x…is not a multiple of 4"),
            (|p| p.starts = p.cu_tokens.wrapping_byte_add(2), "starts 0x…is not a multiple of 4"),
            (|p| p.block_table = p.block_table.wrapping_byte_add(2), "block_table 0x…is not a multiple of 4"),
            (|p| p.block_table_stride = 4, "block_table_stride 4 is less than 8"),
            (|p| p.block_table_stride = 10, "block_table_stride 10 is not a multiple of 4"),
        ],
    );
    let changes: &[fn(&mut snapmla_fetch_params)] = &[
        |p| p.content = null_mut(),
        |p| p.rope = null_mut(),
        |p| (p.num_tokens, p.content, p.rope, p.slots) = (0, null_mut(), null_mut(), null()),
        |p| (p.batch, p.cu_tokens) = (0, null()),
    ];
    accepts(by_slot, call, changes);
    accepts(by_table, call, changes);
    // SAFETY: live handles; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_fetch_dequant(fixture.context, fixture.cache, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_fetch_dequant(fixture.context, fixture.cache, &by_slot, some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}
