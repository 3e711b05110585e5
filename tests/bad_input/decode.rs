use std::ptr::{null, null_mut, without_provenance_mut};

use snapmla::abi::decode::*;
use snapmla::abi::types::*;
use snapmla::request::{CacheView, DecodeRequest};

use crate::fixture::*;

const BATCH: usize = 2;
const Q_LEN: usize = 2;
const HEADS: usize = 3;
const ROWS: usize = BATCH * Q_LEN * HEADS;

/// The arrays of one call.
struct Arrays {
    content: Memory,
    rope: Memory,
    scale: Memory,
    seq_lens: Memory,
    block_table: Memory,
    out: Memory,
    lse: Memory,
    workspace: Memory,
}

impl Arrays {
    fn new() -> Self {
        Self {
            content: Memory::zeroed(ROWS * 2048),
            rope: Memory::zeroed(ROWS * 256),
            scale: Memory::zeroed(ROWS * 4 + 4),
            seq_lens: Memory::zeroed(BATCH * 4 + 4),
            block_table: Memory::zeroed(64),
            out: Memory::new(ROWS * 2048 + 4),
            lse: Memory::new(ROWS * 4 + 4),
            workspace: Memory::new(1 << 20),
        }
    }

    fn outputs(&self) -> [&Memory; 3] {
        [&self.out, &self.lse, &self.workspace]
    }

    fn raw(&self) -> snapmla_decode_params {
        snapmla_decode_params {
            layer: 1,
            batch: BATCH as u32,
            q_len: Q_LEN as u32,
            num_heads: HEADS as u32,
            softmax_scale: 0.1,
            q_dtype: SNAPMLA_DTYPE_F32,
            q_content: self.content.ptr(),
            q_rope: self.rope.ptr(),
            seq_lens: self.seq_lens.ptr(),
            block_table: self.block_table.ptr(),
            max_pages: 4,
            out_dtype: SNAPMLA_DTYPE_F32,
            out: self.out.ptr(),
            lse: self.lse.ptr(),
            workspace: self.workspace.ptr(),
            workspace_size: 1 << 20,
            ..zeroed()
        }
    }

    fn quantised(&self) -> snapmla_decode_params {
        snapmla_decode_params { q_dtype: SNAPMLA_DTYPE_QUANTISED, q_scale: self.scale.ptr(), ..self.raw() }
    }
}

#[test]
fn refuses_what_is_wrong() {
    let (fixture, arrays) = (Fixture::new(), Arrays::new());
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call =
        |params: &snapmla_decode_params| unsafe { snapmla_decode(fixture.context, fixture.cache, params, NO_STREAM) };
    refuses(
        arrays.raw(),
        &arrays.outputs(),
        call,
        &[
            (|p| p.flags = 6, "flags 0x6 has bits other than 0x3"),
            (|p| p.reserved = 1, "reserved is 1, must be 0"),
            (|p| p.layer = 2, "layer 2 is not in 0..2"),
            (|p| p.layer = SNAPMLA_ALL_LAYERS, "layer -1 is not in 0..2"),
            (|p| p.q_len = 0, "q_len is 0, must be at least 1"),
            (|p| (p.batch, p.q_len) = (65536, 65536), "batch 65536 * q_len 65536 is more than 2147483647"),
            (|p| p.num_heads = 0, "num_heads 0 is not in 1..=128"),
            (|p| p.num_heads = 129, "num_heads 129 is not in 1..=128"),
            (|p| p.softmax_scale = f32::NAN, "softmax_scale NaN is not finite"),
            (|p| p.softmax_scale = f32::INFINITY, "softmax_scale inf is not finite"),
            (|p| p.q_dtype = 9, "q_dtype 9 is none of 1 (BF16), 2 (F16), 3 (F32), nor 4 (QUANTISED)"),
            (|p| p.out_dtype = SNAPMLA_DTYPE_QUANTISED, "out_dtype 4 is none of"),
            (|p| p.q_content = null(), "q_content is NULL, but batch is 2"),
            (|p| p.q_rope = null(), "q_rope is NULL, but batch is 2"),
            (|p| p.seq_lens = null(), "seq_lens is NULL, but batch is 2"),
            (|p| p.block_table = null(), "block_table is NULL, but batch is 2"),
            (|p| p.out = null_mut(), "out is NULL, but batch is 2"),
            (|p| p.q_scale = p.lse, "q_scale 0x…is not NULL, but q_dtype 3 is not 4 (QUANTISED)"),
            (|p| (p.batch, p.q_scale) = (0, p.lse), "q_scale 0x…is not NULL, but q_dtype 3 is not 4 (QUANTISED)"),
            (|p| p.q_content = p.q_content.wrapping_byte_add(2), "q_content 0x…02 is not a multiple of 4"),
            (|p| p.q_rope = p.q_rope.wrapping_byte_add(2), "q_rope 0x…02 is not a multiple of 4"),
            (|p| p.out = p.out.wrapping_byte_add(2), "out 0x…02 is not a multiple of 4"),
            (|p| p.lse = p.lse.wrapping_byte_add(2), "lse 0x…2 is not a multiple of 4"),
            (|p| p.seq_lens = p.seq_lens.wrapping_byte_add(2), "seq_lens 0x…2 is not a multiple of 4"),
            (|p| p.cu_q_lens = without_provenance_mut(0x1002), "cu_q_lens 0x1002 is not a multiple of 4"),
            (|p| p.block_table = p.block_table.wrapping_byte_add(2), "block_table 0x…2 is not a multiple of 4"),
            (|p| p.block_table_stride = 12, "block_table_stride 12 is less than 16"),
            (|p| p.block_table_stride = 18, "block_table_stride 18 is not a multiple of 4"),
            (|p| p.block_table_stride = -16, "block_table_stride -16 is less than 16"),
            (|p| p.q_content_head_stride = 512, "q_content_head_stride 512 is less than 2048"),
            (|p| p.q_content_token_stride = 1536, "q_content_token_stride 1536 is less than 2048"),
            (|p| p.q_content_batch_stride = 6144, "q_content_batch_stride 6144 is less than 12288"),
            (|p| p.q_rope_head_stride = 255, "q_rope_head_stride 255 is less than 256"),
            (|p| p.q_rope_token_stride = 770, "q_rope_token_stride 770 is not a multiple of 4"),
            (
                |p| p.q_rope_batch_stride = i64::MAX - 3,
                "q_rope_batch_stride 9223372036854775804 * 2 entries overflows",
            ),
            (|p| p.out_head_stride = 2046, "out_head_stride 2046 is less than 2048"),
            (|p| p.out_token_stride = 2048, "out_token_stride 2048 is less than 6144"),
            (|p| p.out_batch_stride = -4, "out_batch_stride -4 is less than 2048"),
            (|p| p.lse_head_stride = 2, "lse_head_stride 2 is less than 4"),
            (|p| p.lse_token_stride = 8, "lse_token_stride 8 is less than 12"),
            (|p| p.lse_batch_stride = 26, "lse_batch_stride 26 is not a multiple of 4"),
            (|p| p.workspace = p.workspace.wrapping_byte_add(128), "workspace 0x…80 is not a multiple of 256"),
        ],
    );
}

#[test]
fn refuses_quantised_queries_that_q_quant_did_not_write() {
    let (fixture, arrays) = (Fixture::new(), Arrays::new());
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call =
        |params: &snapmla_decode_params| unsafe { snapmla_decode(fixture.context, fixture.cache, params, NO_STREAM) };
    refuses(
        arrays.quantised(),
        &arrays.outputs(),
        call,
        &[
            (|p| p.q_scale = null(), "q_scale is NULL, but batch is 2"),
            (|p| p.q_scale = p.q_scale.wrapping_byte_add(2), "q_scale 0x…2 is not a multiple of 4"),
            (|p| p.q_content = p.q_content.wrapping_byte_add(8), "q_content 0x…08 is not a multiple of 16"),
            (|p| p.q_rope = p.q_rope.wrapping_byte_add(8), "q_rope 0x…08 is not a multiple of 16"),
            (|p| p.q_content_head_stride = 520, "q_content_head_stride 520 is not a multiple of 16"),
            (|p| p.q_content_head_stride = 496, "q_content_head_stride 496 is less than 512"),
            (|p| p.q_rope_head_stride = 64, "q_rope_head_stride 64 is less than 128"),
            (|p| p.q_scale_head_stride = 2, "q_scale_head_stride 2 is less than 4"),
            (|p| p.q_scale_token_stride = 8, "q_scale_token_stride 8 is less than 12"),
            (|p| p.q_scale_batch_stride = 12, "q_scale_batch_stride 12 is less than 24"),
        ],
    );
}

/// The call of `raw`, its tokens found by slots.
fn over_slots(arrays: &Arrays) -> snapmla_decode_params {
    let slots = arrays.block_table.ptr();
    snapmla_decode_params { block_table: null(), max_pages: 0, slots, max_slots: 4, ..arrays.raw() }
}

#[test]
fn refuses_lists_of_slots_that_make_no_sense() {
    let (fixture, arrays) = (Fixture::new(), Arrays::new());
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call =
        |params: &snapmla_decode_params| unsafe { snapmla_decode(fixture.context, fixture.cache, params, NO_STREAM) };
    refuses(
        over_slots(&arrays),
        &arrays.outputs(),
        call,
        &[
            (|p| p.reserved_slots = 1, "reserved_slots is 1, must be 0"),
            (|p| p.slots = null(), "slots is NULL, but max_slots is 4"),
            (|p| p.max_pages = 1, "block_table is 0x0 and max_pages 1, but slots is 0x…"),
            (|p| p.block_table = p.seq_lens, "block_table is 0x…and max_pages 0, but slots is 0x…"),
            (|p| p.slots = p.slots.wrapping_byte_add(4), "slots 0x…4 is not a multiple of 8"),
            (|p| p.slots_stride = 24, "slots_stride 24 is less than 32"),
            (|p| p.slots_stride = 36, "slots_stride 36 is not a multiple of 8"),
            (|p| p.slots_stride = -32, "slots_stride -32 is less than 32"),
            (|p| p.slots_stride = i64::MAX - 7, "overflows 64 bits"),
        ],
    );
    accepts(
        over_slots(&arrays),
        call,
        &[
            |p| p.max_slots = 0,
            |p| p.slots_stride = 32,
            |p| (p.batch, p.slots_stride) = (1, -1),
            |p| p.max_seq_len = 3,
        ],
    );
}

#[test]
fn lists_of_slots_end_at_their_columns() {
    let arrays = Arrays::new();
    let request = request(&snapmla_decode_params { max_slots: 300, ..over_slots(&arrays) }).unwrap();
    assert_eq!((request.max_seq_len, request.slots.stride), (300, 2400));
}

#[test]
fn accepts_what_is_legal() {
    let (fixture, arrays) = (Fixture::new(), Arrays::new());
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call =
        |params: &snapmla_decode_params| unsafe { snapmla_decode(fixture.context, fixture.cache, params, NO_STREAM) };
    accepts(
        arrays.raw(),
        call,
        &[
            |p| p.lse = null_mut(),
            |p| (p.max_pages, p.block_table) = (0, null()),
            |p| p.max_seq_len = 7,
            |p| p.softmax_scale = -1.0,
            |p| {
                p.batch = 0;
                (p.q_content, p.q_rope) = (null(), null());
                (p.seq_lens, p.block_table) = (null(), null());
                (p.out, p.lse) = (null_mut(), null_mut());
                (p.workspace, p.workspace_size) = (null_mut(), 0);
            },
            // [heads][tokens][...], as a batched product leaves them.
            |p| {
                p.q_content_head_stride = 4 * 2048;
                (p.q_content_token_stride, p.q_content_batch_stride) = (2048, 2 * 2048);
            },
            |p| (p.batch, p.q_content_batch_stride, p.block_table_stride) = (1, -1, -1),
        ],
    );
    // SAFETY: live handles; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_decode(fixture.context, fixture.cache, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_decode(fixture.context, fixture.cache, &arrays.raw(), some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}

/// The request of a call that needs 4096 bytes of workspace, whatever the backend would say.
fn request(params: &snapmla_decode_params) -> snapmla::error::Result<DecodeRequest> {
    let cache = CacheView {
        memory: null_mut(),
        page_size: 64,
        num_pages: 4,
        num_layers: 2,
        page_stride: 644 * 64,
        layer_stride: 4 * 644 * 64,
    };
    DecodeRequest::from_params(params, cache, |_| 4096)
}

#[test]
fn a_workspace_must_be_large_enough() {
    let arrays = Arrays::new();
    let small = snapmla_decode_params { workspace_size: 4095, ..arrays.raw() };
    let error = request(&small).unwrap_err();
    assert_eq!(error.status, SNAPMLA_STATUS_WORKSPACE_TOO_SMALL);
    assert!(error.message.starts_with("workspace_size 4095 is less than 4096"), "{}", error.message);
    let error = request(&snapmla_decode_params { workspace: null_mut(), ..arrays.raw() }).unwrap_err();
    assert_eq!(error.status, SNAPMLA_STATUS_INVALID_ARGUMENT);
    assert!(error.message.starts_with("workspace is NULL, but this call needs 4096"), "{}", error.message);
    assert!(request(&snapmla_decode_params { workspace_size: 4096, ..arrays.raw() }).is_ok());
}

#[test]
fn lengths_are_cut_where_the_table_ends_and_at_31_bits() {
    let arrays = Arrays::new();
    let cut = |max_pages, max_seq_len| {
        request(&snapmla_decode_params { max_pages, max_seq_len, ..arrays.raw() }).unwrap().max_seq_len
    };
    assert_eq!(cut(4, 0), 256);
    assert_eq!(cut(4, 300), 256);
    assert_eq!(cut(4, 100), 100);
    assert_eq!(cut(1 << 26, 0), i32::MAX as u32);
    assert_eq!(cut(u32::MAX, u32::MAX), i32::MAX as u32);
    assert_eq!(cut(0, 0), 0);
}

#[test]
fn zero_strides_are_packed_on_what_was_given() {
    let arrays = Arrays::new();
    let wide = snapmla_decode_params { q_content_token_stride: 10_000, out_head_stride: 4096, ..arrays.raw() };
    let request = request(&wide).unwrap();
    assert_eq!((request.q_content.head_stride, request.q_content.batch_stride), (2048, 20_000));
    assert_eq!((request.out.token_stride, request.out.batch_stride), (3 * 4096, 6 * 4096));
    assert_eq!((request.lse.head_stride, request.lse.token_stride, request.lse.batch_stride), (4, 12, 24));
    assert_eq!(request.block_table.stride, 16);
}
