//! Every kernel of the library, one line each.

use super::args::*;
use super::decode::{self, DecodeArgs};
use super::device::Device;
use super::driver::CudaResult;
use super::kernel::Kernel;
use super::library::Libraries;

macro_rules! kernels {
    ($($field:ident: $args:ty = $module:literal / $symbol:literal, $shared:expr;)*) => {
        /// The kernels, loaded on one device.
        pub struct Kernels {
            $(pub $field: Kernel<$args>,)*
        }

        impl Kernels {
            pub fn bind(libraries: &Libraries, device: &Device) -> CudaResult<Self> {
                Ok(Self { $($field: Kernel::bind(libraries, device, $module, $symbol, $shared)?,)* })
            }
        }
    };
}

// field: argument struct = file in cuda/ without .cu / name of the kernel, most bytes of dynamic shared memory
kernels! {
    k_append_bf16: KAppendArgs = "k_append" / "snapmla_k_append_bf16", 0;
    k_append_f16: KAppendArgs = "k_append" / "snapmla_k_append_f16", 0;
    k_append_f32: KAppendArgs = "k_append" / "snapmla_k_append_f32", 0;
    q_quant_bf16: QQuantArgs = "q_quant" / "snapmla_q_quant_bf16", 0;
    q_quant_f16: QQuantArgs = "q_quant" / "snapmla_q_quant_f16", 0;
    q_quant_f32: QQuantArgs = "q_quant" / "snapmla_q_quant_f32", 0;
    fetch_dequant_bf16: FetchArgs = "fetch_dequant" / "snapmla_fetch_dequant_bf16", 0;
    fetch_dequant_f16: FetchArgs = "fetch_dequant" / "snapmla_fetch_dequant_f16", 0;
    fetch_dequant_f32: FetchArgs = "fetch_dequant" / "snapmla_fetch_dequant_f32", 0;
    records_copy: RecordsCopyArgs = "records_copy" / "snapmla_records_copy", 0;
    decode_16: DecodeArgs = "decode" / "snapmla_decode_16", decode::SHARED;
    decode_32: DecodeArgs = "decode" / "snapmla_decode_32", decode::SHARED;
    decode_64: DecodeArgs = "decode" / "snapmla_decode_64", decode::SHARED;
    decode_batch_invariant_16: DecodeArgs = "decode_batch_invariant" / "snapmla_decode_batch_invariant_16", decode::SHARED;
    decode_batch_invariant_32: DecodeArgs = "decode_batch_invariant" / "snapmla_decode_batch_invariant_32", decode::SHARED;
    decode_batch_invariant_64: DecodeArgs = "decode_batch_invariant" / "snapmla_decode_batch_invariant_64", decode::SHARED;
    merge_bf16: MergeArgs = "merge" / "snapmla_merge_bf16", 0;
    merge_f16: MergeArgs = "merge" / "snapmla_merge_f16", 0;
    merge_f32: MergeArgs = "merge" / "snapmla_merge_f32", 0;
}
