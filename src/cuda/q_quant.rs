//! Launches Q-quant.

use super::args::{QQuantArgs, divisor};
use super::grid::{QUANTISED_ROWS, aligned, run_rows};
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
        run_rows(kernel, num_rows, QUANTISED_ROWS, 1, stream, &args)
    }
}

#[cfg(test)]
mod tests {
    /// `ShortDivision` of cuda/half_row.cuh.
    fn quotient(x: f32, s: f32) -> f32 {
        let nearest = 1.0 / s;
        let rest = (-s).mul_add(nearest, 1.0);
        let high = if rest < 0.0 { f32::from_bits(nearest.to_bits() - 1) } else { nearest };
        let low = (-s).mul_add(high, 1.0) * high;
        x.mul_add(high, x * low)
    }

    /// The numbers from 1 to 2 that have `bits` significant bits.
    fn significands(bits: u32) -> impl Iterator<Item = f32> {
        (1 << (bits - 1)..1 << bits).map(move |n| n as f32 / (1 << (bits - 1)) as f32)
    }

    #[test]
    fn short_division_is_exact() {
        // BF16 and F16 content by scales that come from content, and BF16 by those that come from rope.
        let by_content = |bits| significands(bits).map(|largest| largest / 448.0);
        for (bits, scales) in
            [(8, by_content(8).collect::<Vec<_>>()), (11, by_content(11).collect()), (8, significands(8).collect())]
        {
            for &s in &scales {
                for x in significands(bits) {
                    assert_eq!(quotient(x, s).to_bits(), (x / s).to_bits(), "{x} / {s}");
                }
            }
        }
        assert_eq!(quotient(-0.0, 0.3).to_bits(), (-0.0f32).to_bits());
    }
}
