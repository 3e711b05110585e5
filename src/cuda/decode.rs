//! Launches decode: one cooperative grid, a block a multiprocessor.

use std::f32::consts::LOG2_E;

use super::args::{dtype_code, kernel_args};
use super::grid::aligned;
use super::launch::Launch;
use super::{Cuda, Stream};
use crate::abi::types::SNAPMLA_DTYPE_QUANTISED;
use crate::error::Result;
use crate::plan::{self, BlockRows, Plan, Splits};
use crate::request::{BatchRows, DecodeLimits, DecodeRequest, Queries};

/// Dynamic shared memory: all that a block gets on Hopper.
pub const SHARED: u32 = 232_448;
/// Threads a block, as in `cuda/decode/config.cuh`.
const BLOCK: u32 = 512;

/// The least magnitude of the softmax scale. Logits this small are as good as 0, but a factor of 0 would turn the
/// infinities that stand for masked ones into NaN.
const MIN_SCALE: f32 = 1e-30;

kernel_args! {
    RowsArgs, 32 {
        ptr: *mut u8 = 0,
        batch_stride: i64 = 8,
        token_stride: i64 = 16,
        head_stride: i64 = 24,
    }
}

kernel_args! {
    /// As `cuda/decode/args.cuh` has it.
    DecodeArgs, 296 {
        pages: *const u8 = 0,
        page_stride: i64 = 8,
        seq_lens: *const i32 = 16,
        cu_q_lens: *const i32 = 24,
        block_table: *const i32 = 32,
        block_table_stride: i64 = 40,
        q_content: RowsArgs = 48,
        q_rope: RowsArgs = 80,
        q_scale: RowsArgs = 112,
        out: RowsArgs = 144,
        lse: RowsArgs = 176,
        partial_out: *mut u8 = 208,
        partial_stats: *mut u8 = 216,
        batch: u32 = 224,
        q_len: u32 = 228,
        num_heads: u32 = 232,
        num_pages: u32 = 236,
        page_size: u32 = 240,
        max_seq_len: u32 = 244,
        row_groups: u32 = 248,
        workers: u32 = 252,
        min_split_tiles: u32 = 256,
        q_kind: u32 = 260,
        out_kind: u32 = 264,
        causal: u32 = 268,
        q_vectors: u32 = 272,
        out_vectors: u32 = 276,
        scale_log2: f32 = 280,
        masked: f32 = 284,
        heads_inverse: u32 = 288,
        workers_inverse: f32 = 292,
    }
}

impl RowsArgs {
    const NONE: Self = Self { ptr: std::ptr::null_mut(), batch_stride: 0, token_stride: 0, head_stride: 0 };

    fn new<T>(rows: &BatchRows<*mut T>) -> Self {
        let BatchRows { ptr, batch_stride, token_stride, head_stride } = *rows;
        Self { ptr: ptr.cast(), batch_stride, token_stride, head_stride }
    }

    /// Of rows that are only read.
    fn of<T>(rows: &BatchRows<*const T>) -> Self {
        let BatchRows { ptr, batch_stride, token_stride, head_stride } = *rows;
        Self::new(&BatchRows { ptr: ptr.cast_mut(), batch_stride, token_stride, head_stride })
    }

    fn aligned(&self, alignment: usize) -> bool {
        aligned(self.ptr, &[self.batch_stride, self.token_stride, self.head_stride], alignment)
    }
}

impl Cuda {
    pub fn decode_workspace_size(&self, limits: &DecodeLimits) -> u64 {
        plan::workspace_size(limits, self.num_sms())
    }

    /// OK, or why decode cannot take so many rows a sequence.
    pub fn check_rows(&self, q_len: u32, num_heads: u32) -> Result<()> {
        plan::check_rows(q_len, num_heads, self.num_sms())
    }

    pub fn decode(&self, request: &DecodeRequest, stream: Stream) -> Result<()> {
        if request.batch == 0 {
            return Ok(());
        }
        let plan = Plan::new(&request.limits(), self.num_sms())?;
        let args = args(request, &plan);
        self.check_pointers(&[
            ("q_content", args.q_content.ptr),
            ("q_rope", args.q_rope.ptr),
            ("q_scale", args.q_scale.ptr),
            ("cu_q_lens", args.cu_q_lens.cast()),
            ("seq_lens", args.seq_lens.cast()),
            ("block_table", args.block_table.cast()),
            ("out", args.out.ptr),
            ("lse", args.lse.ptr),
            ("workspace", request.workspace),
        ])?;
        let kernels = &self.kernels;
        let kernel = match (plan.splits, plan.rows) {
            (Splits::Balanced, BlockRows::Rows16) => &kernels.decode_16,
            (Splits::Balanced, BlockRows::Rows32) => &kernels.decode_32,
            (Splits::Balanced, BlockRows::Rows64) => &kernels.decode_64,
            (Splits::Fixed { .. }, BlockRows::Rows16) => &kernels.decode_batch_invariant_16,
            (Splits::Fixed { .. }, BlockRows::Rows32) => &kernels.decode_batch_invariant_32,
            (Splits::Fixed { .. }, BlockRows::Rows64) => &kernels.decode_batch_invariant_64,
        };
        let grid = (plan.grid(), 1, 1);
        Launch { kernel, grid, block: BLOCK, shared: SHARED, cooperative: true, pdl: true }.run(stream, &args)
    }
}

fn args(request: &DecodeRequest, plan: &Plan) -> DecodeArgs {
    let (q_content, q_rope) = (RowsArgs::of(&request.q_content), RowsArgs::of(&request.q_rope));
    // As the kernel's loads want them: content 16 bytes at a time, rope two elements.
    let (q_kind, q_scale, rope_alignment) = match &request.queries {
        Queries::Raw(dtype) => (dtype_code(*dtype), RowsArgs::NONE, 2 * dtype.bytes()),
        Queries::Quantised(scale) => (SNAPMLA_DTYPE_QUANTISED, RowsArgs::of(scale), 16),
    };
    let out = RowsArgs::new(&request.out);
    let scale = softmax_scale(request.softmax_scale);
    DecodeArgs {
        pages: request.cache.layer_base(request.layer),
        page_stride: request.cache.page_stride,
        seq_lens: request.seq_lens,
        cu_q_lens: request.cu_q_lens,
        block_table: request.block_table.ptr,
        block_table_stride: request.block_table.stride,
        q_content,
        q_rope,
        q_scale,
        out,
        lse: RowsArgs::new(&request.lse),
        partial_out: request.workspace,
        partial_stats: request.workspace.wrapping_add(plan.partial_out_bytes() as usize),
        batch: request.batch,
        q_len: request.q_len,
        num_heads: request.num_heads,
        num_pages: request.cache.num_pages as u32,
        page_size: request.cache.page_size as u32,
        max_seq_len: request.max_seq_len,
        row_groups: plan.row_groups,
        workers: plan.workers,
        min_split_tiles: plan.min_split_tiles(),
        q_kind,
        out_kind: dtype_code(request.out_dtype),
        causal: request.causal.into(),
        q_vectors: (q_content.aligned(16) && q_rope.aligned(rope_alignment)).into(),
        out_vectors: out.aligned(2 * request.out_dtype.bytes()).into(),
        scale_log2: scale_log2(scale),
        masked: f32::NEG_INFINITY.copysign(-scale),
        heads_inverse: heads_inverse(request.num_heads),
        workers_inverse: rounded_down_inverse(plan.workers),
    }
}

/// The scale, or one of its sign that is not too small; 0 has none and counts as positive.
fn softmax_scale(scale: f32) -> f32 {
    if scale < 0.0 { scale.min(-MIN_SCALE) } else { scale.max(MIN_SCALE) }
}

/// An estimate of how many tiles fall to a worker: rounded down, so that an even share does not come out as one more.
fn rounded_down_inverse(workers: u32) -> f32 {
    (1.0 / workers as f32).next_down()
}

/// For exp2, and finite whatever the scale.
fn scale_log2(scale: f32) -> f32 {
    (scale * LOG2_E).clamp(f32::MIN, f32::MAX)
}

/// What `row_at` of `cuda/decode/rows.cuh` finds a row's query token with: ceil(2^32 / heads), and 0 for one head.
fn heads_inverse(num_heads: u32) -> u32 {
    (1u64 << 32).div_ceil(u64::from(num_heads)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's query token, as `row_at` finds it.
    fn token(row: u32, inverse: u32) -> u32 {
        if inverse == 0 { row } else { ((u64::from(row) * u64::from(inverse)) >> 32) as u32 }
    }

    #[test]
    fn rows_find_their_query_token() {
        // 64 rows a block on twice the multiprocessors there are: more than a launch takes.
        for heads in 1..=128 {
            let inverse = heads_inverse(heads);
            for row in 0..2 * 64 * 132 {
                assert_eq!(token(row, inverse), row / heads, "{row} / {heads}");
            }
        }
    }

    #[test]
    fn a_masked_logit_is_minus_infinity_after_scaling_by_any_scale() {
        for scale in [0.0, -0.0, 1e-45, 1e-38, 0.07, f32::MAX, -1e-45, -1e-30, -0.07, f32::MIN] {
            let used = softmax_scale(scale);
            assert_eq!(f32::NEG_INFINITY.copysign(-used) * scale_log2(used), f32::NEG_INFINITY);
            assert!(scale.abs() < MIN_SCALE || used == scale);
            assert!(scale == 0.0 || used.is_sign_negative() == scale.is_sign_negative());
        }
    }
}
