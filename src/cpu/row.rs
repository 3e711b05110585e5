//! Rows of numbers between callers' tensors, floats and the cache's formats.

use super::element::{Bf16, Element, F16, F32};
use super::simd::Simd;
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::num::e4m3;
use crate::request::Dtype;

/// Numbers of a whole row: content, then rope.
pub const ROW_DIM: usize = CONTENT_DIM + ROPE_DIM;

/// The rope is divided by the same scale as the content; this keeps the quotient far below BF16's largest value.
const ROPE_FLOOR: f32 = f32::from_bits((127 - 60) << 23);

/// A token or a query head as the cache keeps it, before any swizzle.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub struct QuantisedRow {
    pub content: [u8; CONTENT_DIM],
    pub rope: [u16; ROPE_DIM],
    pub scale: f32,
}

impl QuantisedRow {
    pub const ZERO: Self = Self { content: [0; CONTENT_DIM], rope: [0; ROPE_DIM], scale: 0.0 };
}

/// A row as floats.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct FloatRow(pub [f32; ROW_DIM]);

impl FloatRow {
    pub const ZERO: Self = Self([0.0; ROW_DIM]);

    /// # Safety
    /// `content` holds 512 and `rope` 64 numbers of `dtype`.
    #[inline(always)]
    pub unsafe fn widen<S: Simd>(&mut self, simd: S, dtype: Dtype, content: *const u8, rope: *const u8) {
        let (to_content, to_rope) = self.0.split_at_mut(CONTENT_DIM);
        // SAFETY: as the caller vouches.
        unsafe {
            widen(simd, dtype, content, to_content);
            widen(simd, dtype, rope, to_rope);
        }
    }
}

/// `to.len()` numbers of `dtype` to floats. `to.len()` is a multiple of the lanes, as in all of this file.
///
/// # Safety
/// `from` holds that many, at any alignment.
#[inline(always)]
pub unsafe fn widen<S: Simd>(simd: S, dtype: Dtype, from: *const u8, to: &mut [f32]) {
    // SAFETY: as the caller vouches.
    unsafe {
        match dtype {
            Dtype::Bf16 => widen_as::<S, Bf16>(simd, from, to),
            Dtype::F16 => widen_as::<S, F16>(simd, from, to),
            Dtype::F32 => widen_as::<S, F32>(simd, from, to),
        }
    }
}

/// # Safety
/// `from` holds `to.len()` elements, at any alignment.
#[inline(always)]
unsafe fn widen_as<S: Simd, E: Element>(simd: S, from: *const u8, to: &mut [f32]) {
    for (i, to) in to.chunks_exact_mut(S::LANES).enumerate() {
        // SAFETY: vector i lies within the `to.len()` elements at `from`, and `to` is LANES long.
        unsafe { simd.store(to.as_mut_ptr(), E::load(simd, from.add(i * S::LANES * E::BYTES))) };
    }
}

/// Floats times `factor` to numbers of `dtype`, rounded once; every NaN comes out canonical.
///
/// # Safety
/// `to` has room for `from.len()` numbers, at any alignment.
#[inline(always)]
pub unsafe fn narrow<S: Simd>(simd: S, dtype: Dtype, from: &[f32], factor: f32, to: *mut u8) {
    // SAFETY: as the caller vouches.
    unsafe {
        match dtype {
            Dtype::Bf16 => narrow_as::<S, Bf16>(simd, from, factor, to),
            Dtype::F16 => narrow_as::<S, F16>(simd, from, factor, to),
            Dtype::F32 => narrow_as::<S, F32>(simd, from, factor, to),
        }
    }
}

/// # Safety
/// `to` has room for `from.len()` elements, at any alignment.
#[inline(always)]
unsafe fn narrow_as<S: Simd, E: Element>(simd: S, from: &[f32], factor: f32, to: *mut u8) {
    let factor = simd.splat(factor);
    for (i, from) in from.chunks_exact(S::LANES).enumerate() {
        // SAFETY: `from` is LANES long, and vector i lies within the `from.len()` elements at `to`.
        unsafe {
            let v = simd.mul(simd.load(from.as_ptr()), factor);
            E::store(simd, to.add(i * S::LANES * E::BYTES), v);
        }
    }
}

/// The largest magnitude, NaN ignored.
#[inline(always)]
fn largest<S: Simd>(simd: S, row: &[f32]) -> f32 {
    // Two at once, so that one maximum does not have to wait for the other.
    let (mut even, mut odd) = (simd.splat(0.0), simd.splat(0.0));
    for v in row.chunks_exact(2 * S::LANES) {
        // SAFETY: `v` is twice LANES long.
        let (a, b) = unsafe { (simd.load(v.as_ptr()), simd.load(v.as_ptr().add(S::LANES))) };
        (even, odd) = (simd.max(simd.abs(a), even), simd.max(simd.abs(b), odd));
    }
    simd.max_lane(simd.max(even, odd))
}

/// Quantises a token or a query head: one scale for content and rope, from the content's largest magnitude.
#[inline(always)]
pub fn quantise<S: Simd>(simd: S, row: &FloatRow, to: &mut QuantisedRow) {
    let (content, rope) = row.0.split_at(CONTENT_DIM);
    let scale = largest(simd, content) / e4m3::MAX;
    let scale = if scale == 0.0 { 1.0 } else { scale };
    let scale = scale.max(largest(simd, rope) * ROPE_FLOOR);
    let divisor = simd.splat(scale);
    for (from, to) in content.chunks_exact(S::LANES).zip(to.content.chunks_exact_mut(S::LANES)) {
        // SAFETY: both chunks are LANES long.
        unsafe { simd.store_u8(to.as_mut_ptr(), simd.to_e4m3(simd.div(simd.load(from.as_ptr()), divisor))) }
    }
    for (from, to) in rope.chunks_exact(S::LANES).zip(to.rope.chunks_exact_mut(S::LANES)) {
        // SAFETY: both chunks are LANES long.
        unsafe { simd.store_u16(to.as_mut_ptr(), simd.to_bf16(simd.div(simd.load(from.as_ptr()), divisor))) }
    }
    to.scale = scale;
}

/// The numbers that a quantised row stands for, not yet times its scale.
#[inline(always)]
pub fn decode_row<S: Simd>(simd: S, row: &QuantisedRow, to: &mut FloatRow) {
    let (content, rope) = to.0.split_at_mut(CONTENT_DIM);
    let mut nan = false;
    for (from, to) in row.content.chunks_exact(32).zip(content.chunks_exact_mut(32)) {
        let to = to.as_mut_ptr();
        // SAFETY: 32 codes in, 32 floats out.
        nan |= unsafe { simd.decode_e4m3(from.as_ptr(), to, to.add(16)) };
    }
    if nan {
        for (from, to) in row.content.iter().zip(content) {
            *to = e4m3::decode(*from);
        }
    }
    for (from, to) in row.rope.chunks_exact(8).zip(rope.chunks_exact_mut(8)) {
        // SAFETY: 8 BF16 in, 8 floats out.
        unsafe { simd.widen_bf16(from.as_ptr().cast(), to.as_mut_ptr()) };
    }
}
