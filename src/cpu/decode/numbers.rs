//! The numbers of keys, queries and values as the two products take them: floats, or on instruction sets that multiply
//! pairs of BF16 numbers those. E4M3 content and BF16 rope are the same numbers in either.
//!
//! A row of BF16 numbers stands in the first half of a [`FloatRow`].

use crate::cpu::row::{FloatRow, QuantisedRow, ROW_DIM, decode_row};
use crate::cpu::simd::Simd;
use crate::layout::CONTENT_DIM;

/// Numbers in a lane.
pub const fn per_lane<S: Simd>() -> usize {
    if S::PAIRS { 2 } else { 1 }
}

/// Vectors of a row.
pub const fn row_vectors<S: Simd>() -> usize {
    ROW_DIM / (per_lane::<S>() * S::LANES)
}

/// `sum` and the products of the numbers in `a` and `b`, lane by lane.
#[inline(always)]
pub fn multiply<S: Simd>(simd: S, a: S::F, b: S::F, sum: S::F) -> S::F {
    if S::PAIRS { simd.dot_bf16(a, b, sum) } else { simd.mul_add(a, b, sum) }
}

/// The BF16 numbers of a row.
#[inline(always)]
pub fn pairs(row: &FloatRow) -> *const u16 {
    row.0.as_ptr().cast()
}

/// Puts 32 codes where content `32 * group` and on belong, the second 16 first if they are `swapped`. True when one is
/// NaN; as a float that may come out as any number.
///
/// # Safety
/// `codes` is valid for reads of 32 bytes, and `group` less than 16.
#[inline(always)]
pub unsafe fn put_content<S: Simd>(
    simd: S,
    codes: *const u8,
    swapped: bool,
    to: &mut FloatRow,
    group: usize,
) -> bool {
    let to = to.0.as_mut_ptr();
    // SAFETY: as the caller vouches; the group's 32 numbers are in the row.
    unsafe {
        if S::PAIRS {
            simd.decode_e4m3_bf16(codes, swapped, to.cast::<u16>().add(group * 32))
        } else {
            let (to, first) = (to.add(group * 32), if swapped { 16 } else { 0 });
            simd.decode_e4m3(codes, to.add(first), to.add(16 - first))
        }
    }
}

/// Puts eight BF16 numbers where rope `8 * chunk` and on belong.
///
/// # Safety
/// `from` is valid for reads of 16 bytes, and `chunk` less than 8.
#[inline(always)]
pub unsafe fn put_rope<S: Simd>(simd: S, from: *const u8, to: &mut FloatRow, chunk: usize) {
    let (to, at) = (to.0.as_mut_ptr(), CONTENT_DIM + chunk * 8);
    // SAFETY: as the caller vouches; the chunk's 8 numbers are in the row.
    unsafe {
        if S::PAIRS {
            from.copy_to_nonoverlapping(to.cast::<u16>().add(at).cast(), 16);
        } else {
            simd.widen_bf16(from, to.add(at));
        }
    }
}

/// Puts all of a row.
#[inline(always)]
pub fn put_row<S: Simd>(simd: S, row: &QuantisedRow, to: &mut FloatRow) {
    if !S::PAIRS {
        return decode_row(simd, row, to);
    }
    for (group, codes) in row.content.chunks_exact(32).enumerate() {
        // SAFETY: 32 codes, of one of 16 groups.
        unsafe { put_content(simd, codes.as_ptr(), false, to, group) };
    }
    for (chunk, numbers) in row.rope.chunks_exact(8).enumerate() {
        // SAFETY: 8 numbers, of one of 8 chunks.
        unsafe { put_rope(simd, numbers.as_ptr().cast(), to, chunk) };
    }
}
