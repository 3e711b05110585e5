//! Launch shapes of the kernels that give a warp a row.

use crate::error::{Error, Result};

/// Warps a block, as in `cuda/row.cuh`.
const WARPS: i64 = 4;
/// Threads a block.
pub const BLOCK: u32 = 32 * WARPS as u32;

/// A grid with a warp for each of `rows`.
pub fn warp_blocks(rows: i64) -> Result<(u32, u32, u32)> {
    // The x dimension of a grid ends at 2^31 - 1.
    match i32::try_from((rows - 1) / WARPS + 1) {
        Ok(blocks) => Ok((blocks as u32, 1, 1)),
        Err(_) => Err(Error::unsupported(format!("{rows} rows are more than one launch takes"))),
    }
}

/// 1 if the pointer and every stride are multiples of `alignment`, 0 if not.
pub fn aligned<T>(ptr: *const T, strides: &[i64], alignment: usize) -> u32 {
    let bits = strides.iter().fold(ptr as usize, |bits, &stride| bits | stride as usize);
    u32::from(bits.is_multiple_of(alignment))
}
