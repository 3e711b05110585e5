//! Whatever a struct holds, validation answers: it never panics, and what it lets through is safe to compute with.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use snapmla::abi::types::*;
use snapmla::request::*;

/// A struct of arguments, each field of which is drawn from what callers give: nothing, small numbers, addresses and
/// strides, and (in every other struct) anything at all.
fn arguments<P: Copy + 'static>() -> impl Strategy<Value = Bits<P>> {
    // Pairs of 32-bit fields share a word, and both get the small number.
    let small = (1..=8_u64).prop_map(|n| n | n << 32);
    let extreme = prop_oneof![Just(u64::MAX), Just(1 << 63), Just(i64::MAX as u64), Just((1 << 63) - 16)];
    let tame = prop_oneof![20 => Just(0_u64), 20 => (1..1000_u64).prop_map(|n| n << 16), 1 => (1..=64_u64).prop_map(|n| n * 128)];
    let wild = prop_oneof![3 => Just(0_u64), 3 => small, 2 => tame.clone(), 1 => any::<u64>(), 1 => extreme];
    let words = size_of::<P>().div_ceil(8);
    prop_oneof![prop::collection::vec(tame, words), prop::collection::vec(wild, words)].prop_map(|words| {
        // SAFETY: the ABI's structs are integers, floats and raw pointers, for which all bits are values, and `words`
        // has as many bytes.
        Bits(unsafe { words.as_ptr().cast::<P>().read_unaligned() })
    })
}

/// The ABI's structs have no Debug.
#[derive(Clone, Copy)]
struct Bits<P>(P);

impl<P> std::fmt::Debug for Bits<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: no padding in the ABI's structs.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&self.0).cast::<u8>(), size_of::<P>()) };
        write!(f, "{bytes:02x?}")
    }
}

fn cache() -> CacheView {
    CacheView {
        memory: null_mut(),
        page_size: 64,
        num_pages: 8,
        num_layers: 3,
        page_stride: 644 * 64,
        layer_stride: 8 * 644 * 64,
    }
}

/// The furthest row's offset is what 64 bits hold.
fn reachable(strides: &[(i64, i64)]) -> bool {
    let reach =
        strides.iter().map(|&(stride, count)| i128::from(stride) * i128::from((count - 1).max(0))).sum::<i128>();
    strides.iter().all(|&(stride, _)| stride >= 0) && reach <= i128::from(i64::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn context(params in arguments::<snapmla_context_params>()) {
        let _ = ContextRequest::from_params(&params.0);
    }

    #[test]
    fn support(query in arguments::<snapmla_support_query>()) {
        let _ = support::check(&query.0);
    }

    #[test]
    fn caches(mut params in arguments::<snapmla_cache_params>(), pages in 1..1000_i64, layers in 1..100_u32) {
        (params.0.flags, params.0.page_size, params.0.num_layers) = (0, 64, layers);
        params.0.num_pages = params.0.num_pages.max(pages);
        if let Ok(geometry) = CacheGeometry::from_params(&params.0) {
            prop_assert!(geometry.size <= i64::MAX as u64);
        }
    }

    #[test]
    fn k_append(mut params in arguments::<snapmla_k_append_params>(), dtype in 1..4_u32) {
        (params.0.flags, params.0.layer, params.0.dtype) = (0, 1, dtype);
        if let Ok(request) = KAppendRequest::from_params(&params.0, cache()) {
            prop_assert!(reachable(&[(request.content.stride, request.num_tokens)]));
            prop_assert!(reachable(&[(request.rope.stride, request.num_tokens)]));
        }
    }

    #[test]
    fn q_quant(mut params in arguments::<snapmla_q_quant_params>(), dtype in 1..4_u32, heads in 1..=128_u32) {
        (params.0.flags, params.0.dtype, params.0.num_heads) = (0, dtype, heads);
        if let Ok(request) = QQuantRequest::from_params(&params.0) {
            for rows in [request.content, request.rope] {
                prop_assert!(reachable(&[(rows.token_stride, request.num_tokens), (rows.head_stride, heads.into())]));
            }
        }
    }

    #[test]
    fn records_copy(mut params in arguments::<snapmla_records_copy_params>()) {
        (params.0.flags, params.0.reserved) = (0, 0);
        if let Ok(request) = RecordsCopyRequest::from_params(&params.0, cache()) {
            prop_assert!(request.first_layer + request.num_layers <= 3);
        }
    }

    #[test]
    fn limits(params in arguments::<snapmla_decode_limits>()) {
        if let Ok(limits) = DecodeLimits::from_params(&params.0) {
            prop_assert!(u64::from(limits.max_batch) * u64::from(limits.max_q_len) <= i32::MAX as u64);
        }
    }

    #[test]
    fn decode(
        mut params in arguments::<snapmla_decode_params>(),
        (batch, q_len, heads) in (0..5_u32, 1..5_u32, 1..=128_u32),
        (q_dtype, out_dtype) in (1..5_u32, 1..4_u32),
    ) {
        params.0 = snapmla_decode_params {
            flags: 1, layer: 1, batch, q_len, num_heads: heads, softmax_scale: 1.0, q_dtype, out_dtype, reserved: 0,
            q_scale: if q_dtype == SNAPMLA_DTYPE_QUANTISED { params.0.q_scale } else { null_mut() },
            workspace: null_mut(), slots: null(), max_slots: 0, reserved_slots: 0, ..params.0
        };
        if let Ok(request) = DecodeRequest::from_params(&params.0, cache(), |_| 0) {
            let uniform = request.cu_q_lens.is_null();
            let tokens = if uniform { q_len } else { batch * q_len };
            let reach = |batch_stride, token_stride, head_stride| {
                let sequences = if uniform { batch } else { 0 };
                let tokens = if batch == 0 { 0 } else { tokens };
                reachable(&[
                    (batch_stride, sequences.into()), (token_stride, tokens.into()), (head_stride, heads.into()),
                ])
            };
            for rows in [request.q_content, request.q_rope] {
                prop_assert!(reach(rows.batch_stride, rows.token_stride, rows.head_stride));
            }
            prop_assert!(reach(request.out.batch_stride, request.out.token_stride, request.out.head_stride));
            prop_assert!(reach(request.lse.batch_stride, request.lse.token_stride, request.lse.head_stride));
            prop_assert!(reachable(&[(request.block_table.stride, batch.into())]));
            prop_assert!(u64::from(request.max_seq_len) <= u64::from(request.max_pages) * 64);
        }
    }

    #[test]
    fn fetch(mut params in arguments::<snapmla_fetch_params>(), dtype in 1..4_u32, by_slot in any::<bool>()) {
        (params.0.flags, params.0.layer, params.0.dtype) = (0, 1, dtype);
        if by_slot {
            params.0.block_table = null_mut();
        } else {
            params.0.slots = null_mut();
        }
        if let Ok(request) = FetchRequest::from_params(&params.0, cache()) {
            prop_assert!(reachable(&[(request.content.stride, request.num_tokens)]));
            prop_assert!(reachable(&[(request.rope.stride, request.num_tokens)]));
            if let FetchSource::BlockTable { block_table, batch, cu_tokens, .. } = request.source {
                prop_assert!(reachable(&[(block_table.stride, batch.into())]));
                prop_assert!(batch == 0 || !cu_tokens.is_null());
            }
        }
    }

    #[test]
    fn merge(
        mut params in arguments::<snapmla_merge_params>(),
        dtype in 1..4_u32,
        (parts, heads) in (1..5_u32, 1..200_u32),
    ) {
        (params.0.flags, params.0.parts_dtype, params.0.out_dtype) = (0, dtype, dtype);
        (params.0.num_parts, params.0.num_heads) = (parts, heads);
        if let Ok(request) = MergeRequest::from_params(&params.0) {
            let (parts, heads) = (i64::from(request.num_parts), i64::from(request.num_heads));
            let reach = |part, token, head| reachable(&[(part, parts), (token, request.num_tokens), (head, heads)]);
            let (rows, lse) = (request.parts, request.parts_lse);
            prop_assert!(reach(request.parts_part_stride, rows.token_stride, rows.head_stride));
            prop_assert!(reach(request.parts_lse_part_stride, lse.token_stride, lse.head_stride));
            prop_assert!(reach(0, request.out.token_stride, request.out.head_stride));
            prop_assert!(reach(0, request.lse.token_stride, request.lse.head_stride));
        }
    }
}
