//! The launch of decode: kernel, grid, attributes, arguments.

use std::ptr;

use snapmla::abi::types::*;
use snapmla::backend::Backend;
use snapmla::cuda::Cuda;
use snapmla::request::{BatchRows, DecodeLimits, DecodeRequest, Dtype, Queries, Rows};

use crate::cache::{LAYER_STRIDE, NUM_PAGES, PAGE_SIZE, PAGE_STRIDE, view};
use crate::harness::{Fake, Launch, cuda, device_address, with_fake_driver};

const NO_STREAM: *mut std::os::raw::c_void = ptr::null_mut();

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC: u32 = 6;
/// Of the stand-in's devices.
const NUM_SMS: u32 = 132;
const WORKSPACE: u64 = 0x900_0000;

fn rows<P>(ptr: P, [batch_stride, token_stride, head_stride]: [i64; 3]) -> BatchRows<P> {
    BatchRows { ptr, batch_stride, token_stride, head_stride }
}

/// BF16 in and out, all packed.
pub fn request(batch: u32, q_len: u32, num_heads: u32, max_seq_len: u32) -> DecodeRequest {
    let packed = |row: i64| {
        let (heads, tokens) = (i64::from(num_heads), i64::from(q_len));
        [row * heads * tokens, row * heads, row]
    };
    DecodeRequest {
        cache: view(),
        layer: 1,
        causal: true,
        batch_invariant: false,
        batch,
        q_len,
        num_heads,
        softmax_scale: 0.0625,
        queries: Queries::Raw(Dtype::Bf16),
        q_content: rows(device_address(0, 0x10_0000), packed(1024)),
        q_rope: rows(device_address(0, 0x20_0000), packed(128)),
        cu_q_lens: ptr::null(),
        seq_lens: device_address(0, 0x30_0000),
        block_table: Rows { ptr: device_address(0, 0x40_0000), stride: 80 },
        max_pages: 20,
        slots: Rows { ptr: ptr::null(), stride: 0 },
        max_seq_len,
        out_dtype: Dtype::Bf16,
        out: rows(device_address(0, 0x50_0000), packed(1024)),
        lse: rows(device_address(0, 0x60_0000), packed(4)),
        workspace: device_address(0, WORKSPACE),
        workspace_size: u64::MAX,
    }
}

pub fn run<'a>(fake: &'a Fake, cuda: &Cuda, request: &DecodeRequest) -> &'a Launch {
    cuda.decode(request, NO_STREAM).unwrap_or_else(|error| panic!("{error}"));
    fake.launches().pop().expect("a launch")
}

fn float(launch: &Launch, offset: usize) -> f32 {
    f32::from_bits(launch.arg32(offset))
}

fn address(offset: u64) -> u64 {
    device_address::<u8>(0, offset) as u64
}

with_fake_driver! {
    fn lists_of_slots_are_refused_with_a_reason(fake) {
        let backend = Backend::Cuda(cuda());
        let request = DecodeRequest {
            slots: Rows { ptr: device_address(0, 0x40_0000), stride: 80 },
            max_pages: 0,
            ..request(1, 1, 16, 10)
        };
        for error in [backend.decode(&request, NO_STREAM.cast()), backend.check_slots(true)] {
            let error = error.unwrap_err();
            assert_eq!(error.status, SNAPMLA_STATUS_UNSUPPORTED);
            assert!(error.message.contains("decode over slots"), "{}", error.message);
        }
        assert!(fake.launches().is_empty());
        backend.check_slots(false).unwrap();
    }

    fn one_cooperative_grid_with_a_block_a_multiprocessor(fake) {
        fake.set_args_size(296);
        let cuda = cuda();
        assert_eq!(cuda.num_sms(), NUM_SMS);
        for (batch, q_len, heads, length, kernel, row_groups, workers, min_split) in [
            (1, 1, 16, 8_192, "snapmla_decode_16", 1, 132, 2),
            (300, 2, 8, 131_072, "snapmla_decode_16", 1, 132, 2),
            (1, 1, 20, 8_192, "snapmla_decode_32", 1, 132, 4),
            (1, 1, 128, 4_096, "snapmla_decode_16", 8, 16, 2),
            (1, 1, 128, 8_192, "snapmla_decode_32", 4, 33, 4),
            (32, 1, 128, 65_536, "snapmla_decode_64", 2, 66, 4),
            (32, 3, 40, 65_536, "snapmla_decode_64", 2, 66, 4),
            (2, 5, 128, 65_536, "snapmla_decode_64", 10, 13, 4),
            (1, 66, 128, 64, "snapmla_decode_64", 132, 1, 4),
        ] {
            let launch = run(fake, &cuda, &request(batch, q_len, heads, length));
            let shape = (batch, q_len, heads, length);
            assert_eq!(launch.kernel(), kernel, "{shape:?}");
            assert_eq!((launch.grid, launch.block), ([row_groups * workers, 1, 1], [512, 1, 1]), "{shape:?}");
            assert_eq!(launch.shared, 232_448);
            assert_eq!(launch.attributes(), [(COOPERATIVE, 1), (PROGRAMMATIC, 1)]);
            let args = [248, 252, 256].map(|offset| launch.arg32(offset));
            assert_eq!(args, [row_groups, workers, min_split], "{shape:?}");
        }
    }

    fn a_batch_invariant_call_has_kernels_of_its_own(fake) {
        fake.set_args_size(296);
        let cuda = cuda();
        for (batch, q_len, heads, length, kernel, row_groups, partials) in [
            (1, 1, 16, 1_024, "snapmla_decode_batch_invariant_16", 1, 0),
            (1, 1, 16, 8_192, "snapmla_decode_batch_invariant_16", 1, 8),
            (3, 1, 20, 8_192, "snapmla_decode_batch_invariant_32", 1, 24),
            (1, 1, 128, 4_096, "snapmla_decode_batch_invariant_64", 2, 4),
            (32, 2, 128, 65_536, "snapmla_decode_batch_invariant_64", 4, 32 * 32),
        ] {
            let call = DecodeRequest { batch_invariant: true, ..request(batch, q_len, heads, length) };
            let launch = run(fake, &cuda, &call);
            let shape = (batch, q_len, heads, length);
            assert_eq!(launch.kernel(), kernel, "{shape:?}");
            assert_eq!(launch.grid, [NUM_SMS / row_groups * row_groups, 1, 1], "{shape:?}");
            assert_eq!(launch.attributes(), [(COOPERATIVE, 1), (PROGRAMMATIC, 1)]);
            let rows = kernel.rsplit('_').next().unwrap().parse::<u64>().unwrap() * u64::from(row_groups);
            assert_eq!(launch.arg64(216) - launch.arg64(208), partials * rows * 2048, "{shape:?}");
            assert!(cuda.decode_workspace_size(&call.limits()) >= partials * rows * 2056, "{shape:?}");
        }
    }

    fn its_kernels_may_have_all_shared_memory(fake) {
        let _cuda = cuda();
        let allowed = |name: &str| fake.kernels().iter().find(|k| k.name() == name).map(|k| k.shared_allowed);
        for kind in ["decode", "decode_batch_invariant"] {
            for rows in [16, 32, 64] {
                let name = format!("snapmla_{kind}_{rows}");
                assert_eq!(allowed(&name), Some(232_448), "{name}");
            }
        }
    }

    fn raw_queries(fake) {
        fake.set_args_size(296);
        let launch = run(fake, &cuda(), &request(32, 2, 40, 65_536));
        let rows = [(48, 0x10_0000, 1024), (80, 0x20_0000, 128), (144, 0x50_0000, 1024), (176, 0x60_0000, 4)];
        for (offset, at, row) in rows {
            let found = [0, 8, 16, 24].map(|i| launch.arg64(offset + i));
            assert_eq!(found, [address(at), row * 80, row * 40, row], "at {offset}");
        }
        assert_eq!([112, 120, 128, 136].map(|offset| launch.arg64(offset)), [0; 4]);
        assert_eq!(launch.arg64(0), (view().memory as i64 + LAYER_STRIDE) as u64);
        assert_eq!(launch.arg64(8), PAGE_STRIDE as u64);
        assert_eq!([16, 24, 32, 40].map(|offset| launch.arg64(offset)), [address(0x30_0000), 0, address(0x40_0000), 80]);
        // Two partials for each of 132 blocks of 64 rows of 512 floats.
        let partials = 2 * 132 * 64 * 2048;
        assert_eq!([208, 216].map(|offset| launch.arg64(offset)), [address(WORKSPACE), address(WORKSPACE + partials)]);
        let shape = [224, 228, 232, 236, 240, 244].map(|offset| launch.arg32(offset));
        assert_eq!(shape, [32, 2, 40, NUM_PAGES as u32, PAGE_SIZE as u32, 65_536]);
        // Kinds, causal, vectors.
        assert_eq!([260, 264, 268, 272, 276].map(|offset| launch.arg32(offset)), [1, 1, 1, 1, 1]);
        assert_eq!((float(launch, 280), float(launch, 284)), (0.0625 * std::f32::consts::LOG2_E, f32::NEG_INFINITY));
        assert_eq!(launch.arg32(288), (1u64 << 32).div_ceil(40) as u32);
        assert_eq!(float(launch, 292), (1.0 / 66.0f32).next_down());
    }

    fn quantised_queries_of_a_ragged_batch(fake) {
        fake.set_args_size(296);
        let mut request = request(3, 4, 1, 1_000);
        request.causal = false;
        request.queries = Queries::Quantised(rows(device_address(0, 0x70_0000), [0, 4, 4]));
        request.cu_q_lens = device_address(0, 0x80_0000);
        request.out_dtype = Dtype::F32;
        request.lse.ptr = ptr::null_mut();
        let launch = run(fake, &cuda(), &request);
        assert_eq!(launch.kernel(), "snapmla_decode_16");
        assert_eq!([112, 120, 128, 136].map(|offset| launch.arg64(offset)), [address(0x70_0000), 0, 4, 4]);
        assert_eq!((launch.arg64(24), launch.arg64(176)), (address(0x80_0000), 0));
        assert_eq!([260, 264, 268, 288].map(|offset| launch.arg32(offset)), [4, 3, 0, 0]);
    }

    fn vectors_only_where_rows_are_aligned(fake) {
        fake.set_args_size(296);
        let cuda = cuda();
        type Change = fn(&mut DecodeRequest);
        let cases: [(Change, [u32; 2]); 9] = [
            (|_| (), [1, 1]),
            (|r| r.q_content.ptr = r.q_content.ptr.wrapping_add(2), [0, 1]),
            (|r| r.q_content.head_stride = 1032, [0, 1]),
            (|r| r.q_rope.ptr = r.q_rope.ptr.wrapping_add(4), [1, 1]),
            (|r| r.q_rope.ptr = r.q_rope.ptr.wrapping_add(2), [0, 1]),
            (|r| r.q_rope.token_stride = 1026, [0, 1]),
            (|r| r.out.ptr = r.out.ptr.wrapping_add(2), [1, 0]),
            (|r| r.out.batch_stride = 0x1_0002, [1, 0]),
            (|r| { r.queries = Queries::Raw(Dtype::F32); r.out_dtype = Dtype::F32; r.out.head_stride = 2052 }, [1, 0]),
        ];
        for (i, (change, vectors)) in cases.into_iter().enumerate() {
            let mut request = request(2, 2, 8, 100);
            change(&mut request);
            let launch = run(fake, &cuda, &request);
            assert_eq!([launch.arg32(272), launch.arg32(276)], vectors, "case {i}");
        }
    }

    fn any_scale_keeps_masked_logits_out(fake) {
        fake.set_args_size(296);
        let cuda = cuda();
        let log2_e = std::f32::consts::LOG2_E;
        for (given, scale, masked) in [
            (0.5, 0.5, f32::NEG_INFINITY),
            (-0.5, -0.5, f32::INFINITY),
            (0.0, 1e-30, f32::NEG_INFINITY),
            (-0.0, 1e-30, f32::NEG_INFINITY),
        ] {
            let mut request = request(1, 1, 8, 100);
            request.softmax_scale = given;
            let launch = run(fake, &cuda, &request);
            assert_eq!((float(launch, 280), float(launch, 284)), (scale * log2_e, masked), "{given}");
        }
    }

    fn nothing_cached_needs_no_block_table(fake) {
        fake.set_args_size(296);
        let mut request = request(5, 1, 16, 0);
        request.block_table = Rows { ptr: ptr::null(), stride: 0 };
        request.max_pages = 0;
        let launch = run(fake, &cuda(), &request);
        assert_eq!((launch.grid, launch.arg64(32), launch.arg32(244)), ([132, 1, 1], 0, 0));
    }

    fn no_sequence_is_no_launch(fake) {
        cuda().decode(&request(0, 1, 16, 100), NO_STREAM).unwrap();
        assert_eq!(fake.num_launches(), 0);
    }

    fn more_rows_than_the_device_holds_are_refused(fake) {
        let cuda = cuda();
        let error = cuda.decode(&request(1, 67, 128, 64), NO_STREAM).unwrap_err();
        assert_eq!(error.status, SNAPMLA_STATUS_UNSUPPORTED);
        assert!(error.message.contains("q_len 67 * num_heads 128 = 8576 is more than 8448"), "{error}");
        assert_eq!(cuda.check_rows(67, 128).unwrap_err().message, error.message);
        cuda.check_rows(66, 128).unwrap();
        assert_eq!(fake.num_launches(), 0);
    }

    fn the_workspace_is_a_function_of_the_limits(_fake) {
        let limits = DecodeLimits { max_batch: 128, max_q_len: 1, max_heads: 128, max_seq_len: 131_072, batch_invariant: false };
        assert_eq!(cuda().decode_workspace_size(&limits), 2 * 132 * 64 * (2048 + 8));
    }

    fn every_pointer_is_checked_where_asked_for(fake) {
        let checking = Cuda::open(0, true).unwrap();
        let host = 0x7000_0000_0000u64;
        type Change = fn(&mut DecodeRequest, u64);
        let changes: [(&str, Change); 9] = [
            ("q_content", |r, host| r.q_content.ptr = host as *const u8),
            ("q_rope", |r, host| r.q_rope.ptr = host as *const u8),
            ("q_scale", |r, host| r.queries = Queries::Quantised(rows(host as *const f32, [4; 3]))),
            ("cu_q_lens", |r, host| r.cu_q_lens = host as *const i32),
            ("seq_lens", |r, host| r.seq_lens = host as *const i32),
            ("block_table", |r, host| r.block_table.ptr = host as *const i32),
            ("out", |r, host| r.out.ptr = host as *mut u8),
            ("lse", |r, host| r.lse.ptr = host as *mut f32),
            ("workspace", |r, host| r.workspace = host as *mut u8),
        ];
        checking.decode(&request(2, 1, 16, 100), NO_STREAM).unwrap();
        for (name, change) in changes {
            let mut request = request(2, 1, 16, 100);
            change(&mut request, host);
            let error = checking.decode(&request, NO_STREAM).unwrap_err();
            assert!(error.message.starts_with(name), "{name}: {error}");
        }
        assert_eq!(fake.num_launches(), 1);
    }
}
