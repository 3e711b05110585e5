//! A call that succeeds allocates nothing on the calling thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use snapmla::abi::cache::*;
use snapmla::abi::context::*;
use snapmla::abi::decode::*;
use snapmla::abi::fetch::*;
use snapmla::abi::k_append::*;
use snapmla::abi::merge::*;
use snapmla::abi::q_quant::*;
use snapmla::abi::records_copy::*;
use snapmla::abi::types::*;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator, with a count on the side.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[repr(align(256))]
struct Aligned<const N: usize>([u8; N]);

/// Calls twice, since first uses may set up what later ones share, and counts the second time.
fn allocations(call: impl Fn() -> snapmla_status) -> usize {
    assert_eq!(call(), SNAPMLA_STATUS_OK);
    let before = ALLOCATIONS.get();
    assert_eq!(call(), SNAPMLA_STATUS_OK);
    ALLOCATIONS.get() - before
}

fn sized<P: Copy>(change: impl FnOnce(&mut P)) -> P {
    // SAFETY: the ABI's structs are integers, floats and raw pointers, and begin with struct_size.
    let mut params = unsafe {
        let mut params = std::mem::zeroed::<P>();
        (&raw mut params).cast::<u32>().write(size_of::<P>() as u32);
        params
    };
    change(&mut params);
    params
}

#[test]
fn calls_allocate_nothing() {
    // With one thread the caller does the work, with more it wakes others.
    for threads in [1, 3] {
        check_calls(threads);
    }
}

fn check_calls(threads: u32) {
    const HEADS: usize = 128;
    const TOKENS: usize = 96;
    let mut memory = Box::new(Aligned([0; 644 * 64 * 4]));
    let (mut context, mut cache) = (null_mut(), null_mut());
    let params: snapmla_context_params = sized(|p: &mut snapmla_context_params| {
        (p.backend, p.cpu_threads) = (SNAPMLA_BACKEND_CPU, threads);
    });
    let geometry: snapmla_cache_params = sized(|p: &mut snapmla_cache_params| {
        (p.page_size, p.num_layers, p.num_pages) = (64, 1, 4);
        (p.memory, p.memory_size) = (memory.0.as_mut_ptr().cast(), 644 * 64 * 4);
    });
    // SAFETY: whole structs, places for the handles, and memory that outlives them.
    unsafe {
        assert_eq!(snapmla_context_create(&params, &mut context), SNAPMLA_STATUS_OK);
        assert_eq!(snapmla_cache_init(context, &geometry, null_mut(), &mut cache), SNAPMLA_STATUS_OK);
    }
    let (content, rope) = (vec![1.0_f32; 512 * HEADS], vec![1.0_f32; 64 * HEADS]);
    let (slots, copied): (Vec<i64>, Vec<i64>) =
        ((0..TOKENS as i64).collect(), (TOKENS as i64..2 * TOKENS as i64).collect());
    let append = sized(|p: &mut snapmla_k_append_params| {
        (p.dtype, p.num_tokens, p.slots) = (SNAPMLA_DTYPE_F32, TOKENS as i64, slots.as_ptr());
        (p.content, p.rope) = (content.as_ptr().cast(), rope.as_ptr().cast());
    });
    let (mut q_content, mut q_rope, mut q_scale) =
        (Aligned([0; HEADS * 512]), Aligned([0; HEADS * 128]), [0.0_f32; HEADS]);
    let quant = sized(|p: &mut snapmla_q_quant_params| {
        (p.dtype, p.num_heads, p.num_tokens) = (SNAPMLA_DTYPE_F32, HEADS as u32, 1);
        (p.content, p.rope) = (content.as_ptr().cast(), rope.as_ptr().cast());
        (p.q_content, p.q_rope) = (q_content.0.as_mut_ptr().cast(), q_rope.0.as_mut_ptr().cast());
        p.q_scale = q_scale.as_mut_ptr();
    });
    let copy = sized(|p: &mut snapmla_records_copy_params| {
        (p.num_records, p.src_slots, p.dst_slots) = (TOKENS as i64, slots.as_ptr(), copied.as_ptr());
    });
    let mut workspace = Box::new(Aligned([0; 1 << 20]));
    let (mut out, mut lse) = (vec![0.0_f32; HEADS * 512], vec![0.0_f32; HEADS]);
    let (length, table) = (2 * TOKENS as i32, [0_i32, 1, 2, 3]);
    let decode = sized(|p: &mut snapmla_decode_params| {
        (p.batch, p.q_len, p.num_heads, p.softmax_scale) = (1, 1, HEADS as u32, 0.1);
        (p.q_dtype, p.out_dtype) = (SNAPMLA_DTYPE_F32, SNAPMLA_DTYPE_F32);
        (p.q_content, p.q_rope) = (content.as_ptr().cast(), rope.as_ptr().cast());
        (p.seq_lens, p.block_table, p.max_pages) = (&length, table.as_ptr(), 4);
        (p.out, p.lse) = (out.as_mut_ptr().cast(), lse.as_mut_ptr());
        (p.workspace, p.workspace_size) = (workspace.0.as_mut_ptr().cast(), 1 << 20);
    });
    let mut back = vec![0.0_f32; TOKENS * 512];
    let fetch = sized(|p: &mut snapmla_fetch_params| {
        (p.dtype, p.num_tokens, p.slots) = (SNAPMLA_DTYPE_F32, TOKENS as i64, slots.as_ptr());
        p.content = back.as_mut_ptr().cast();
    });
    let mut merged = vec![0.0_f32; HEADS * 512];
    let merge = sized(|p: &mut snapmla_merge_params| {
        (p.num_parts, p.num_heads, p.num_tokens) = (1, HEADS as u32, 1);
        (p.parts_dtype, p.out_dtype) = (SNAPMLA_DTYPE_F32, SNAPMLA_DTYPE_F32);
        (p.parts, p.parts_lse) = (out.as_ptr().cast(), lse.as_ptr());
        p.out = merged.as_mut_ptr().cast();
    });
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let counts = unsafe {
        [
            ("k_append", allocations(|| snapmla_k_append(context, cache, &append, null_mut()))),
            ("q_quant", allocations(|| snapmla_q_quant(context, &quant, null_mut()))),
            ("records_copy", allocations(|| snapmla_records_copy(context, cache, &copy, null_mut()))),
            ("decode", allocations(|| snapmla_decode(context, cache, &decode, null_mut()))),
            ("fetch_dequant", allocations(|| snapmla_fetch_dequant(context, cache, &fetch, null_mut()))),
            ("merge", allocations(|| snapmla_merge(context, &merge, null_mut()))),
        ]
    };
    assert_eq!(counts.map(|(_, count)| count), [0; 6], "{threads} threads: {counts:?}");
    // SAFETY: live handles.
    unsafe {
        assert_eq!(snapmla_cache_destroy(cache), SNAPMLA_STATUS_OK);
        assert_eq!(snapmla_context_destroy(context), SNAPMLA_STATUS_OK);
    }
}
