//! The launch of each operation: kernel, shape, arguments.

use std::ptr;

use snapmla::request::{
    Dtype, FetchRequest, FetchSource, HeadRows, MergeRequest, QQuantRequest, RecordsCopyRequest, Rows,
};

use crate::cache::{LAYER_STRIDE, NUM_PAGES, PAGE_SIZE, PAGE_STRIDE, divisor, view};
use crate::harness::{Fake, Launch, cuda, device_address, with_fake_driver};
use crate::launching;

const NO_STREAM: *mut std::os::raw::c_void = ptr::null_mut();

/// A kernel with four warps a block and nothing in dynamic shared memory.
fn check_shape(launch: &Launch, kernel: &str, grid: [u32; 3]) {
    assert_eq!(launch.kernel(), kernel);
    assert_eq!((launch.grid, launch.block, launch.shared), (grid, [128, 1, 1], 0));
}

/// The cache arguments of `layer`, which lie first.
fn check_cache(launch: &Launch, layer: i64) {
    assert_eq!(launch.arg64(0), (view().memory as i64 + layer * LAYER_STRIDE) as u64);
    assert_eq!(launch.arg64(8), PAGE_STRIDE as u64);
    assert_eq!(launch.arg64(16), NUM_PAGES as u64 * PAGE_SIZE as u64);
    assert_eq!(launch.arg64(24), divisor(PAGE_SIZE as u64));
    assert_eq!((launch.arg32(32), launch.arg32(36)), (PAGE_SIZE as u32, NUM_PAGES as u32));
}

fn addresses(launch: &Launch, expected: &[(usize, u64)]) {
    for &(offset, address) in expected {
        let address = if address == 0 { 0 } else { device_address::<u8>(0, address) as u64 };
        assert_eq!(launch.arg64(offset), address, "at {offset}");
    }
}

fn numbers(launch: &Launch, expected: &[(usize, u64)]) {
    for &(offset, number) in expected {
        assert_eq!(launch.arg64(offset), number, "at {offset}");
    }
}

fn last(fake: &Fake) -> &Launch {
    fake.launches().pop().expect("a launch")
}

fn fetch(source: FetchSource) -> FetchRequest {
    FetchRequest {
        cache: view(),
        layer: 0,
        dtype: Dtype::F32,
        num_tokens: 5,
        source,
        content: Rows { ptr: device_address(0, 0x100), stride: 2048 },
        rope: Rows { ptr: ptr::null_mut(), stride: 256 },
    }
}

fn head_rows<P>(ptr: P, token_stride: i64, head_stride: i64) -> HeadRows<P> {
    HeadRows { ptr, token_stride, head_stride }
}

with_fake_driver! {
    fn k_append(fake) {
        fake.set_args_size(96);
        let cuda = cuda();
        cuda.k_append(&launching::request(129), NO_STREAM).unwrap();
        let launch = fake.launch();
        check_shape(launch, "snapmla_k_append_bf16", [17, 1, 1]);
        check_cache(launch, 1);
        addresses(launch, &[(40, 0x100), (56, 0x500), (72, 0x800)]);
        numbers(launch, &[(48, 1152), (64, 1152), (80, 129)]);
        assert_eq!(launch.arg32(88), 1);
    }

    fn k_append_takes_vectors_only_where_rows_are_aligned(fake) {
        fake.set_args_size(96);
        let cuda = cuda();
        for (dtype, kernel, content, content_stride, rope, rope_stride, vector) in [
            (Dtype::Bf16, "snapmla_k_append_bf16", 0x100, 1152, 0x500, 132, 1),
            (Dtype::Bf16, "snapmla_k_append_bf16", 0x102, 1152, 0x500, 128, 0),
            (Dtype::Bf16, "snapmla_k_append_bf16", 0x100, 1032, 0x500, 128, 0),
            (Dtype::F16, "snapmla_k_append_f16", 0x100, 1152, 0x502, 128, 0),
            (Dtype::F16, "snapmla_k_append_f16", 0x100, 1152, 0x500, 130, 0),
            (Dtype::F32, "snapmla_k_append_f32", 0x100, 2304, 0x508, 2304, 1),
            (Dtype::F32, "snapmla_k_append_f32", 0x100, 2304, 0x504, 2304, 0),
        ] {
            let mut request = launching::request(1);
            request.dtype = dtype;
            request.content = Rows { ptr: device_address(0, content), stride: content_stride };
            request.rope = Rows { ptr: device_address(0, rope), stride: rope_stride };
            cuda.k_append(&request, NO_STREAM).unwrap();
            check_shape(last(fake), kernel, [1, 1, 1]);
            assert_eq!(last(fake).arg32(88), vector, "{request:?}");
        }
    }

    fn q_quant(fake) {
        fake.set_args_size(96);
        let request = QQuantRequest {
            dtype: Dtype::F16,
            num_tokens: 3,
            num_heads: 20,
            content: head_rows(device_address(0, 0x100) as *const u8, 20 * 1152, 1152),
            rope: head_rows(device_address(0, 0x500) as *const u8, 128, 3 * 128),
            q_content: device_address(0, 0x1000),
            q_rope: device_address(0, 0x2000),
            q_scale: device_address(0, 0x3000),
        };
        cuda().q_quant(&request, NO_STREAM).unwrap();
        let launch = fake.launch();
        check_shape(launch, "snapmla_q_quant_f16", [8, 1, 1]);
        addresses(launch, &[(0, 0x100), (24, 0x500), (48, 0x1000), (56, 0x2000), (64, 0x3000)]);
        numbers(launch, &[(8, 23040), (16, 1152), (32, 128), (40, 384), (72, 60), (80, divisor(20))]);
        assert_eq!((launch.arg32(88), launch.arg32(92)), (20, 1));
    }

    fn records_copy(fake) {
        fake.set_args_size(72);
        let request = RecordsCopyRequest {
            cache: view(),
            first_layer: 1,
            num_layers: 2,
            num_records: 9,
            src_slots: device_address(0, 0x100),
            dst_slots: device_address(0, 0x200),
        };
        cuda().records_copy(&request, NO_STREAM).unwrap();
        let launch = fake.launch();
        check_shape(launch, "snapmla_records_copy", [1, 2, 1]);
        check_cache(launch, 1);
        addresses(launch, &[(48, 0x100), (56, 0x200)]);
        numbers(launch, &[(40, LAYER_STRIDE as u64), (64, 9)]);
    }

    fn fetch_by_slots(fake) {
        fake.set_args_size(136);
        cuda().fetch_dequant(&fetch(FetchSource::Slots(device_address(0, 0x800))), NO_STREAM).unwrap();
        let launch = fake.launch();
        check_shape(launch, "snapmla_fetch_dequant_f32", [2, 1, 1]);
        check_cache(launch, 0);
        addresses(launch, &[(40, 0x800), (48, 0), (64, 0), (72, 0), (88, 0x100), (104, 0)]);
        numbers(launch, &[(96, 2048), (112, 256), (120, 5)]);
        assert_eq!(launch.arg32(128), 1);
    }

    fn fetch_by_block_table(fake) {
        fake.set_args_size(136);
        let source = FetchSource::BlockTable {
            block_table: Rows { ptr: device_address(0, 0x800), stride: 48 },
            max_pages: 12,
            batch: 7,
            starts: ptr::null(),
            cu_tokens: device_address(0, 0x900),
        };
        cuda().fetch_dequant(&fetch(source), NO_STREAM).unwrap();
        let launch = fake.launch();
        addresses(launch, &[(40, 0), (48, 0x800), (64, 0), (72, 0x900)]);
        numbers(launch, &[(56, 48)]);
        assert_eq!((launch.arg32(80), launch.arg32(84)), (12, 7));
    }

    fn merge(fake) {
        fake.set_args_size(144);
        let request = MergeRequest {
            num_parts: 5,
            num_heads: 16,
            num_tokens: 2,
            parts_dtype: Dtype::F32,
            out_dtype: Dtype::Bf16,
            parts: head_rows(device_address(0, 0x1000) as *const u8, 16 * 2048, 2048),
            parts_part_stride: 2 * 16 * 2048,
            parts_lse: head_rows(device_address(0, 0x100) as *const f32, 64, 4),
            parts_lse_part_stride: 128,
            out: head_rows(device_address(0, 0x2000), 16 * 1024, 1024),
            lse: head_rows(ptr::null_mut(), 64, 4),
        };
        cuda().merge(&request, NO_STREAM).unwrap();
        let launch = fake.launch();
        check_shape(launch, "snapmla_merge_f32", [8, 1, 1]);
        addresses(launch, &[(0, 0x1000), (32, 0x100), (64, 0x2000), (88, 0)]);
        numbers(launch, &[(8, 65536), (16, 32768), (24, 2048), (40, 128), (48, 64), (56, 4)]);
        numbers(launch, &[(72, 16384), (80, 1024), (96, 64), (104, 4), (112, 32), (120, divisor(16))]);
        assert_eq!([128, 132, 136, 140].map(|offset| launch.arg32(offset)), [16, 5, 1, 1]);
    }

    fn nothing_to_do_is_no_launch(fake) {
        let cuda = cuda();
        cuda.k_append(&launching::request(0), NO_STREAM).unwrap();
        let mut fetch = fetch(FetchSource::Slots(ptr::null()));
        fetch.num_tokens = 0;
        cuda.fetch_dequant(&fetch, NO_STREAM).unwrap();
        assert_eq!(fake.num_launches(), 0);
    }
}
