//! Launches Q-quant.

use super::args::{QQuantArgs, divisor};
use super::grid::{aligned, run_rows};
use super::{Cuda, Stream};
use crate::error::Result;
use crate::request::{Dtype, QQuantRequest};

impl Cuda {
    pub fn q_quant(&self, request: &QQuantRequest, stream: Stream) -> Result<()> {
        let QQuantRequest { dtype, num_tokens, num_heads, content, rope, q_content, q_rope, q_scale } = *request;
        if num_tokens == 0 {
            return Ok(());
        }
        self.check_pointers(&[
            ("content", content.ptr),
            ("rope", rope.ptr),
            ("q_content", q_content),
            ("q_rope", q_rope),
            ("q_scale", q_scale.cast()),
        ])?;
        let vector = aligned(content.ptr, &[content.token_stride, content.head_stride], 16)
            && aligned(rope.ptr, &[rope.token_stride, rope.head_stride], 2 * dtype.bytes());
        let num_rows = num_tokens * num_heads as i64;
        let args = QQuantArgs {
            content: content.ptr,
            content_token_stride: content.token_stride,
            content_head_stride: content.head_stride,
            rope: rope.ptr,
            rope_token_stride: rope.token_stride,
            rope_head_stride: rope.head_stride,
            q_content,
            q_rope,
            q_scale,
            num_rows,
            heads_divisor: divisor(num_heads as u64),
            num_heads: num_heads as u32,
            vector: vector.into(),
        };
        let kernel = match dtype {
            Dtype::Bf16 => &self.kernels.q_quant_bf16,
            Dtype::F16 => &self.kernels.q_quant_f16,
            Dtype::F32 => &self.kernels.q_quant_f32,
        };
        run_rows(kernel, num_rows, 1, stream, &args)
    }
}
