use std::ptr::null;

use snapmla::abi::support::snapmla_supports;
use snapmla::abi::types::*;

use crate::fixture::*;

fn query() -> snapmla_support_query {
    snapmla_support_query {
        page_size: 64,
        num_heads: 128,
        q_len: 1,
        content_dim: 512,
        rope_dim: 64,
        in_dtype: SNAPMLA_DTYPE_BF16,
        out_dtype: SNAPMLA_DTYPE_BF16,
        ..zeroed()
    }
}

#[test]
fn says_why_not() {
    let fixture = Fixture::new();
    let cases: [Case<snapmla_support_query>; 12] = [
        (|q| q.content_dim = 256, "content_dim is 256, only 512"),
        (|q| q.rope_dim = 128, "rope_dim is 128, only 64"),
        (|q| q.decode_flags = 4, "decode_flags 0x4"),
        (|q| q.page_size = 1, "page_size 1 is not a multiple of 8"),
        (|q| q.page_size = 2048, "page_size 2048"),
        (|q| q.num_heads = 0, "num_heads 0"),
        (|q| q.num_heads = 129, "num_heads 129 is not in 1..=128"),
        (|q| q.q_len = 0, "q_len is 0"),
        (|q| q.in_dtype = 9, "in_dtype 9"),
        (|q| q.out_dtype = SNAPMLA_DTYPE_QUANTISED, "out_dtype 4"),
        (|q| q.out_dtype = 0, "out_dtype 0"),
        (|q| q.over_slots = 2, "over_slots 0x2"),
    ];
    for (change, says) in cases {
        let mut query = query();
        change(&mut query);
        // SAFETY: a live handle and a whole struct.
        let status = unsafe { snapmla_supports(fixture.context, &query) };
        assert_refused(status, SNAPMLA_STATUS_UNSUPPORTED, says);
    }
    // SAFETY: NULL is part of the contract.
    let status = unsafe { snapmla_supports(fixture.context, null()) };
    assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "query is NULL");
}

#[test]
fn serves_what_the_contract_lists() {
    let fixture = Fixture::new();
    accepts(
        query(),
        // SAFETY: a live handle and a whole struct.
        |query| unsafe { snapmla_supports(fixture.context, query) },
        &[
            |_| (),
            |q| q.in_dtype = SNAPMLA_DTYPE_QUANTISED,
            |q| (q.in_dtype, q.out_dtype) = (SNAPMLA_DTYPE_F32, SNAPMLA_DTYPE_F16),
            |q| (q.page_size, q.num_heads, q.q_len) = (16, 1, 8),
            |q| q.page_size = 256,
            |q| q.decode_flags = SNAPMLA_DECODE_CAUSAL,
            |q| q.decode_flags = SNAPMLA_DECODE_CAUSAL | SNAPMLA_DECODE_BATCH_INVARIANT,
            |q| q.over_slots = 1,
        ],
    );
}
