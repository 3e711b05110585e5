//! Launches fetch-dequant.

use std::ptr;

use super::args::{CacheArgs, FetchArgs};
use super::grid::{aligned, run_rows};
use super::{Cuda, Stream};
use crate::error::Result;
use crate::request::{Dtype, FetchRequest, FetchSource, Rows};

/// Most rows a warp, as in `cuda/fetch_dequant.cu`.
const MAX_ROWS: i64 = 2;
/// Warps a multiprocessor up to which each takes one row.
const SPREAD_WARPS: i64 = 16;

impl Cuda {
    pub fn fetch_dequant(&self, request: &FetchRequest, stream: Stream) -> Result<()> {
        let FetchRequest { cache, layer, dtype, num_tokens, source, content, rope } = *request;
        if num_tokens == 0 {
            return Ok(());
        }
        let (slots, table) = match source {
            FetchSource::Slots(slots) => (slots, Table::NONE),
            FetchSource::BlockTable { block_table, max_pages, batch, starts, cu_tokens } => {
                (ptr::null(), Table { block_table, max_pages, batch, starts, cu_tokens })
            }
        };
        self.check_pointers(&[
            ("slots", slots.cast()),
            ("block_table", table.block_table.ptr.cast()),
            ("starts", table.starts.cast()),
            ("cu_tokens", table.cu_tokens.cast()),
            ("content", content.ptr),
            ("rope", rope.ptr),
        ])?;
        let vector =
            aligned(content.ptr, &[content.stride], 16) && aligned(rope.ptr, &[rope.stride], 2 * dtype.bytes());
        // One while there are multiprocessors to spread over: for the shortest wait.
        let rows_per_warp = if num_tokens > SPREAD_WARPS * i64::from(self.num_sms()) { MAX_ROWS } else { 1 };
        let args = FetchArgs {
            cache: CacheArgs::new(&cache, layer),
            slots,
            block_table: table.block_table.ptr,
            block_table_stride: table.block_table.stride,
            starts: table.starts,
            cu_tokens: table.cu_tokens,
            max_pages: table.max_pages,
            batch: table.batch,
            content: content.ptr,
            content_stride: content.stride,
            rope: rope.ptr,
            rope_stride: rope.stride,
            num_tokens,
            vector: vector.into(),
            rows_per_warp: rows_per_warp as u32,
        };
        let kernel = match dtype {
            Dtype::Bf16 => &self.kernels.fetch_dequant_bf16,
            Dtype::F16 => &self.kernels.fetch_dequant_f16,
            Dtype::F32 => &self.kernels.fetch_dequant_f32,
        };
        run_rows(kernel, num_tokens, rows_per_warp, 1, stream, &args)
    }
}

/// The fields of [`FetchSource::BlockTable`].
struct Table {
    block_table: Rows<*const i32>,
    max_pages: u32,
    batch: u32,
    starts: *const i32,
    cu_tokens: *const i32,
}

impl Table {
    const NONE: Self = Self {
        block_table: Rows { ptr: ptr::null(), stride: 0 },
        max_pages: 0,
        batch: 0,
        starts: ptr::null(),
        cu_tokens: ptr::null(),
    };
}
