//! Launches K-append.

use super::args::{CacheArgs, KAppendArgs};
use super::grid::{QUANTISED_ROWS, aligned, run_rows};
use super::{Cuda, Stream};
use crate::error::Result;
use crate::request::{Dtype, KAppendRequest};

impl Cuda {
    pub fn k_append(&self, request: &KAppendRequest, stream: Stream) -> Result<()> {
        let KAppendRequest { cache, layer, dtype, num_tokens, content, rope, slots } = *request;
        if num_tokens == 0 {
            return Ok(());
        }
        self.check_pointers(&[("content", content.ptr), ("rope", rope.ptr), ("slots", slots.cast())])?;
        let vector =
            aligned(content.ptr, &[content.stride], 16) && aligned(rope.ptr, &[rope.stride], 2 * dtype.bytes());
        let args = KAppendArgs {
            cache: CacheArgs::new(&cache, layer),
            content: content.ptr,
            content_stride: content.stride,
            rope: rope.ptr,
            rope_stride: rope.stride,
            slots,
            num_tokens,
            vector: vector.into(),
            reserved: 0,
        };
        let kernel = match dtype {
            Dtype::Bf16 => &self.kernels.k_append_bf16,
            Dtype::F16 => &self.kernels.k_append_f16,
            Dtype::F32 => &self.kernels.k_append_f32,
        };
        run_rows(kernel, num_tokens, QUANTISED_ROWS, 1, stream, &args)
    }
}
