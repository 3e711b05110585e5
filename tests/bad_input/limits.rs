use std::ptr::{null, null_mut};

use snapmla::abi::decode::snapmla_decode_workspace_size;
use snapmla::abi::types::*;

use crate::fixture::*;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let valid = snapmla_decode_limits { max_batch: 4, max_q_len: 2, max_heads: 16, max_seq_len: 4096, ..zeroed() };
    let call = |limits: &snapmla_decode_limits| {
        let mut size = u64::MAX;
        // SAFETY: a live handle, a whole struct, and a place for the size.
        let status = unsafe { snapmla_decode_workspace_size(fixture.context, limits, &mut size) };
        assert_eq!(status == SNAPMLA_STATUS_OK, size != u64::MAX, "written on success and only then");
        status
    };
    refuses(
        valid,
        &[],
        call,
        &[
            (|p| p.flags = 1, "flags 0x1"),
            (|p| p.max_batch = 0, "max_batch is 0, must be at least 1"),
            (|p| p.max_q_len = 0, "max_q_len is 0, must be at least 1"),
            (|p| p.max_heads = 0, "max_heads 0 is not in 1..=128"),
            (|p| p.max_heads = 129, "max_heads 129 is not in 1..=128"),
            (|p| p.max_seq_len = 0, "max_seq_len is 0, must be at least 1"),
            (
                |p| (p.max_batch, p.max_q_len) = (1 << 30, 2),
                "max_batch 1073741824 * max_q_len 2 is more than 2147483647",
            ),
        ],
    );
    accepts(
        valid,
        call,
        &[|p| p.max_seq_len = u32::MAX, |p| p.max_batch = 100_000, |p| p.flags = SNAPMLA_DECODE_BATCH_INVARIANT],
    );
    // SAFETY: a live handle; NULL is part of the contract.
    unsafe {
        let mut size = 0;
        let status = snapmla_decode_workspace_size(fixture.context, null(), &mut size);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "limits is NULL");
        let status = snapmla_decode_workspace_size(fixture.context, &valid, null_mut());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "size is NULL");
    }
}
