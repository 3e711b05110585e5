use std::ptr::null;

use snapmla::abi::records_copy::snapmla_records_copy;
use snapmla::abi::types::*;

use crate::fixture::*;

#[test]
fn refuses_and_accepts() {
    let fixture = Fixture::new();
    let (from, to) = ([1_i64, -1], [3_i64, 4]);
    let valid = snapmla_records_copy_params {
        layer: SNAPMLA_ALL_LAYERS,
        num_records: 2,
        src_slots: from.as_ptr(),
        dst_slots: to.as_ptr(),
        ..zeroed()
    };
    // SAFETY: live handles, and structs whose arrays are as large as they say.
    let call = |params: &snapmla_records_copy_params| unsafe {
        snapmla_records_copy(fixture.context, fixture.cache, params, NO_STREAM)
    };
    refuses(
        valid,
        &[],
        call,
        &[
            (|p| p.flags = 1, "flags 0x1"),
            (|p| p.layer = -2, "layer -2 is not in 0..2"),
            (|p| p.layer = 2, "layer 2 is not in 0..2"),
            (|p| p.reserved = 5, "reserved is 5, must be 0"),
            (|p| p.num_records = -7, "num_records -7 is less than 0"),
            (
                |p| p.num_records = i64::MAX / 8 + 1,
                "num_records 1152921504606846976 * 8 bytes of src_slots overflows",
            ),
            (|p| p.src_slots = null(), "src_slots is NULL, but num_records is 2"),
            (|p| p.dst_slots = null(), "dst_slots is NULL, but num_records is 2"),
            (|p| p.src_slots = p.src_slots.wrapping_byte_add(2), "src_slots 0x…is not a multiple of 8"),
            (|p| p.dst_slots = p.dst_slots.wrapping_byte_add(2), "dst_slots 0x…is not a multiple of 8"),
        ],
    );
    accepts(valid, call, &[|p| p.layer = 1, |p| (p.num_records, p.src_slots, p.dst_slots) = (0, null(), null())]);
    // SAFETY: live handles; NULL and a stream are part of the contract.
    unsafe {
        let status = snapmla_records_copy(fixture.context, fixture.cache, null(), NO_STREAM);
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "params is NULL");
        let status = snapmla_records_copy(fixture.context, fixture.cache, &valid, some_stream());
        assert_refused(status, SNAPMLA_STATUS_INVALID_ARGUMENT, "stream 0x40 is not NULL");
    }
}
