//! Validated requests: what a caller's struct says once every rule has been checked and every default filled in.
//!
//! The backends take these and check nothing again. Pointers are the caller's: host memory for the CPU backend,
//! device memory for CUDA. All strides are bytes, already resolved (never the "0 means packed" of the ABI).

mod cache;
mod checks;
mod context;
mod decode;
mod fetch;
mod k_append;
mod limits;
mod merge;
mod q_quant;
mod records_copy;
mod strides;
pub mod support;

pub use cache::CacheGeometry;
pub use context::{ContextRequest, Which, device_ordinal};
pub use decode::{DecodeRequest, Queries};
pub use fetch::{FetchRequest, FetchSource};
pub use k_append::KAppendRequest;
pub use limits::DecodeLimits;
pub use merge::MergeRequest;
pub use q_quant::QQuantRequest;
pub use records_copy::RecordsCopyRequest;

use crate::error::Result;

/// Element type of a caller's floating-point tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    Bf16,
    F16,
    F32,
}

impl Dtype {
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::Bf16 | Dtype::F16 => 2,
            Dtype::F32 => 4,
        }
    }
}

/// Rows of one tensor read by a token index: row i at `ptr + i * stride`.
#[derive(Debug, Clone, Copy)]
pub struct Rows<P> {
    pub ptr: P,
    pub stride: i64,
}

/// Rows of one tensor read by token and head (or part): at `ptr + token * token_stride + head * head_stride`.
#[derive(Debug, Clone, Copy)]
pub struct HeadRows<P> {
    pub ptr: P,
    pub token_stride: i64,
    pub head_stride: i64,
}

/// Rows of one tensor read by sequence, query token and head.
///
/// Query token i of sequence b is at `b * batch_stride + i * token_stride` in a uniform batch and at
/// `(cu_q_lens[b] + i) * token_stride` in a ragged one.
#[derive(Debug, Clone, Copy)]
pub struct BatchRows<P> {
    pub ptr: P,
    pub batch_stride: i64,
    pub token_stride: i64,
    pub head_stride: i64,
}

/// One layer's (or every layer's) pages, as validated at cache init.
#[derive(Debug, Clone, Copy)]
pub struct CacheView {
    pub memory: *mut u8,
    pub page_size: usize,
    pub num_pages: i64,
    pub num_layers: usize,
    pub page_stride: i64,
    pub layer_stride: i64,
}

// SAFETY: an address and numbers. What may be done at the address is the contract of each call, not of this type.
unsafe impl Send for CacheView {}
// SAFETY: as above.
unsafe impl Sync for CacheView {}

impl CacheView {
    /// First byte of page 0 of `layer`.
    pub fn layer_base(&self, layer: usize) -> *mut u8 {
        self.memory.wrapping_offset(self.layer_stride as isize * layer as isize)
    }

    /// Slots of a layer.
    pub fn num_slots(&self) -> i64 {
        self.num_pages * self.page_size as i64
    }
}

/// A block table of `batch` rows.
fn block_table(table: *const i32, stride: i64, batch: i64, max_pages: u32) -> Result<Rows<*const i32>> {
    checks::array("block_table", table, 4, ("batch", batch))?;
    let row = strides::Row { bytes: 4 * i64::from(max_pages), unit: 4 };
    let [stride] = strides::resolve(row, [strides::Dim::new("block_table_stride", stride, batch)])?;
    Ok(Rows { ptr: table, stride })
}
