use std::ptr::{null, null_mut};

use snapmla::abi::q_quant::snapmla_q_quant;
use snapmla::abi::types::*;

use crate::fixture::*;

const HEADS: usize = 3;
const TOKENS: usize = 2;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let rows = TOKENS * HEADS;
    let (content, rope) = (Memory::zeroed(rows * 2048), Memory::zeroed(rows * 256));
    let (q_content, q_rope, q_scale) =
        (Memory::new(rows * 512 + 16), Memory::new(rows * 128 + 16), Memory::new(rows * 4 + 4));
    let valid = snapmla_q_quant_params {
        dtype: SNAPMLA_DTYPE_F32,
        num_heads: HEADS as u32,
        num_tokens: TOKENS as i64,
        content: content.ptr(),
        rope: rope.ptr(),
        q_content: q_content.ptr(),
        q_rope: q_rope.ptr(),
        q_scale: q_scale.ptr(),
        ..zeroed()
    };
    // SAFETY: a live handle, and structs whose arrays are as large as they say.
    let call = |params: &snapmla_q_quant_params| unsafe { snapmla_q_quant(fixture.context, params, NO_STREAM) };
    refuses(
        valid,
        &[&q_content, &q_rope, &q_scale],
        call,
        &[
            (|p| p.flags = 4, "flags 0x4"),
            (|p| p.dtype = SNAPMLA_DTYPE_QUANTISED, "dtype 4 is none of"),
            (|p| p.num_heads = 0, "num_heads 0 is not in 1..=128"),
            (|p| p.num_heads = 129, "num_heads 129 is not in 1..=128"),
            (|p| p.num_tokens = -1, "num_tokens -1 is less than 0"),
            (|p| p.content = null(), "content is NULL, but num_tokens is 2"),
            (|p| p.rope = null(), "rope is NULL, but num_tokens is 2"),
            (|p| p.q_content = null_mut(), "q_content is NULL, but num_tokens is 2"),
            (|p| p.q_rope = null_mut(), "q_rope is NULL, but num_tokens is 2"),
            (|p| p.q_scale = null_mut(), "q_scale is NULL, but num_tokens is 2"),
            (|p| p.content = p.content.wrapping_byte_add(2), "content 0x…02 is not a multiple of 4"),
            (|p| p.rope = p.rope.wrapping_byte_add(2), "rope 0x…02 is not a multiple of 4"),
            (|p| p.q_content = p.q_content.wrapping_byte_add(8), "q_content 0x…08 is not a multiple of 16"),
            (|p| p.q_rope = p.q_rope.wrapping_byte_add(8), "q_rope 0x…08 is not a multiple of 16"),
            (|p| p.q_scale = p.q_scale.wrapping_byte_add(2), "q_scale 0x…02 is not a multiple of 4"),
            (|p| p.content_head_stride = 512, "content_head_stride 512 is less than 2048"),
            (|p| p.content_head_stride = 2050, "content_head_stride 2050 is not a multiple of 4"),
            (
                |p| p.content_token_stride = 512 * 3,
                "content_token_stride 1536 is less than 2048, the bytes of a row (strides are bytes)",
            ),
            (
                |p| p.content_token_stride = 4096,
                "content_token_stride 4096 is less than 6144, the span of 3 rows at content_head_stride 2048",
            ),
            (|p| p.rope_head_stride = -256, "rope_head_stride -256 is less than 256"),
            (|p| p.rope_token_stride = 64, "rope_token_stride 64 is less than 256"),
            (|p| p.num_tokens = i64::MAX / 16, "content_token_stride 6144 * 576460752303423487 entries overflows"),
        ],
    );
    accepts(
        valid,
        call,
        &[
            |p| {
                p.num_tokens = 0;
                (p.content, p.rope) = (null(), null());
                (p.q_content, p.q_rope, p.q_scale) = (null_mut(), null_mut(), null_mut());
            },
            // [heads][tokens][...], as a batched product leaves them.
            |p| (p.content_token_stride, p.content_head_stride) = (2048, 4096),
            |p| (p.num_heads, p.content_head_stride, p.rope_head_stride) = (1, 1, 1),
        ],
    );
    // SAFETY: a live handle; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_q_quant(fixture.context, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_q_quant(fixture.context, &valid, some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}
