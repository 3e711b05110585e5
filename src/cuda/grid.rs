//! Launches of the kernels that give a warp a row.

use super::Stream;
use super::kernel::Kernel;
use super::launch::Launch;
use crate::error::{Error, Result};

/// Warps a block, as in `cuda/row.cuh`.
const WARPS: i64 = 4;
/// Rows a warp quantises, as in `cuda/half_row.cuh`.
pub const QUANTISED_ROWS: i64 = 2;
/// Threads a block.
const BLOCK: u32 = 32 * WARPS as u32;

/// Launches `kernel` with a warp for every `per_warp` of `rows`, `layers` times over.
pub fn run_rows<Args: Copy>(
    kernel: &Kernel<Args>,
    rows: i64,
    per_warp: i64,
    layers: usize,
    stream: Stream,
    args: &Args,
) -> Result<()> {
    // A grid ends at 2^31 - 1 blocks in x and 65,535 in y.
    let blocks = (rows - 1) / (per_warp * WARPS) + 1;
    let (Ok(x), Ok(y)) = (i32::try_from(blocks), u16::try_from(layers)) else {
        return Err(Error::unsupported(format!("{rows} rows in {layers} layers are more than one launch takes")));
    };
    let grid = (x as u32, y.into(), 1);
    Launch { kernel, grid, block: BLOCK, shared: 0, cooperative: false, pdl: true }.run(stream, args)
}

/// Whether the pointer and every stride are multiples of `alignment`: then the kernel may use vector accesses.
pub fn aligned<T>(ptr: *const T, strides: &[i64], alignment: usize) -> bool {
    strides.iter().fold(ptr as usize, |bits, &stride| bits | stride as usize).is_multiple_of(alignment)
}
