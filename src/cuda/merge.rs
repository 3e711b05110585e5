//! Launches merge.

use super::args::{MergeArgs, divisor, dtype_code};
use super::grid::{aligned, run_rows};
use super::{Cuda, Stream};
use crate::error::Result;
use crate::request::{Dtype, MergeRequest};

impl Cuda {
    pub fn merge(&self, request: &MergeRequest, stream: Stream) -> Result<()> {
        let MergeRequest {
            num_parts, num_heads, num_tokens, parts_dtype, out_dtype, parts, parts_lse, out, lse, ..
        } = *request;
        if num_tokens == 0 {
            return Ok(());
        }
        self.check_pointers(&[
            ("parts", parts.ptr),
            ("parts_lse", parts_lse.ptr.cast()),
            ("out", out.ptr),
            ("lse", lse.ptr.cast()),
        ])?;
        let vector = aligned(parts.ptr, &[request.parts_part_stride, parts.token_stride, parts.head_stride], 16)
            && aligned(out.ptr, &[out.token_stride, out.head_stride], 16);
        let num_rows = num_tokens * i64::from(num_heads);
        let args = MergeArgs {
            parts: parts.ptr,
            parts_part_stride: request.parts_part_stride,
            parts_token_stride: parts.token_stride,
            parts_head_stride: parts.head_stride,
            parts_lse: parts_lse.ptr,
            parts_lse_part_stride: request.parts_lse_part_stride,
            parts_lse_token_stride: parts_lse.token_stride,
            parts_lse_head_stride: parts_lse.head_stride,
            out: out.ptr,
            out_token_stride: out.token_stride,
            out_head_stride: out.head_stride,
            lse: lse.ptr,
            lse_token_stride: lse.token_stride,
            lse_head_stride: lse.head_stride,
            num_rows,
            heads_divisor: divisor(num_heads.into()),
            num_heads,
            num_parts,
            out_dtype: dtype_code(out_dtype),
            vector: vector.into(),
        };
        let kernel = match parts_dtype {
            Dtype::Bf16 => &self.kernels.merge_bf16,
            Dtype::F16 => &self.kernels.merge_f16,
            Dtype::F32 => &self.kernels.merge_f32,
        };
        run_rows(kernel, num_rows, 1, 1, stream, &args)
    }
}
