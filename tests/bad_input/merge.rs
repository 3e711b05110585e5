use std::ptr::{null, null_mut};

use snapmla::abi::merge::snapmla_merge;
use snapmla::abi::types::*;

use crate::fixture::*;

const PARTS: usize = 2;
const TOKENS: usize = 2;
const HEADS: usize = 3;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let rows = TOKENS * HEADS;
    let (parts, parts_lse) = (Memory::zeroed(PARTS * rows * 2048), Memory::zeroed(PARTS * rows * 4));
    let (out, lse) = (Memory::new(rows * 1024 + 4), Memory::new(rows * 4 + 4));
    let valid = snapmla_merge_params {
        num_parts: PARTS as u32,
        num_heads: HEADS as u32,
        num_tokens: TOKENS as i64,
        parts_dtype: SNAPMLA_DTYPE_F32,
        out_dtype: SNAPMLA_DTYPE_BF16,
        parts: parts.ptr(),
        parts_lse: parts_lse.ptr(),
        out: out.ptr(),
        lse: lse.ptr(),
        ..zeroed()
    };
    // SAFETY: a live handle, and structs whose arrays are as large as they say.
    let call = |params: &snapmla_merge_params| unsafe { snapmla_merge(fixture.context, params, NO_STREAM) };
    refuses(
        valid,
        &[&out, &lse],
        call,
        &[
            (|p| p.flags = 8, "flags 0x8"),
            (|p| p.num_parts = 0, "num_parts is 0, must be at least 1"),
            (|p| p.num_heads = 0, "num_heads is 0, must be at least 1"),
            (|p| p.num_tokens = -1, "num_tokens -1 is less than 0"),
            (|p| p.parts_dtype = 0, "parts_dtype 0 is none of"),
            (|p| p.out_dtype = SNAPMLA_DTYPE_QUANTISED, "out_dtype 4 is none of"),
            (|p| p.parts = null(), "parts is NULL, but num_tokens is 2"),
            (|p| p.parts_lse = null(), "parts_lse is NULL, but num_tokens is 2"),
            (|p| p.out = null_mut(), "out is NULL, but num_tokens is 2"),
            (|p| p.parts = p.parts.wrapping_byte_add(2), "parts 0x…02 is not a multiple of 4"),
            (|p| p.parts_lse = p.parts_lse.wrapping_byte_add(1), "parts_lse 0x…1 is not a multiple of 4"),
            (|p| p.out = p.out.wrapping_byte_add(1), "out 0x…01 is not a multiple of 2"),
            (|p| p.lse = p.lse.wrapping_byte_add(2), "lse 0x…2 is not a multiple of 4"),
            (|p| p.parts_head_stride = 512, "parts_head_stride 512 is less than 2048"),
            (|p| p.parts_token_stride = 4096, "parts_token_stride 4096 is less than 6144"),
            (|p| p.parts_part_stride = 6144, "parts_part_stride 6144 is less than 12288"),
            (|p| p.parts_lse_head_stride = -4, "parts_lse_head_stride -4 is less than 4"),
            (|p| p.parts_lse_token_stride = 8, "parts_lse_token_stride 8 is less than 12"),
            (|p| p.parts_lse_part_stride = 25, "parts_lse_part_stride 25 is not a multiple of 4"),
            (|p| p.out_head_stride = 1022, "out_head_stride 1022 is less than 1024"),
            (|p| p.out_token_stride = 1024, "out_token_stride 1024 is less than 3072"),
            (|p| p.lse_head_stride = 3, "lse_head_stride 3 is less than 4"),
            (|p| p.lse_token_stride = 13, "lse_token_stride 13 is not a multiple of 4"),
            (|p| p.num_tokens = i64::MAX / 8, "parts_token_stride 6144 * 1152921504606846975 entries overflows"),
        ],
    );
    accepts(
        valid,
        call,
        &[
            |p| p.lse = null_mut(),
            |p| (p.num_parts, p.parts_part_stride) = (1, -1),
            |p| {
                p.num_tokens = 0;
                (p.parts, p.parts_lse, p.out, p.lse) = (null(), null(), null_mut(), null_mut());
            },
        ],
    );
    // SAFETY: a live handle; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_merge(fixture.context, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_merge(fixture.context, &valid, some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}
