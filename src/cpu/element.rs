//! The element types of callers' tensors, as vector code sees them.

use super::simd::Simd;

/// One element type. A type parameter, so that no loop over a row asks which it is.
pub trait Element {
    const BYTES: usize;

    /// The values of `LANES` elements.
    ///
    /// # Safety
    /// `p` is valid for reads of that many, at any alignment.
    unsafe fn load<S: Simd>(simd: S, p: *const u8) -> S::F;

    /// Rounds to nearest even; every NaN is written as the canonical one, as on CUDA.
    ///
    /// # Safety
    /// `p` is valid for writes of `LANES` elements, at any alignment.
    unsafe fn store<S: Simd>(simd: S, p: *mut u8, v: S::F);
}

pub struct Bf16;
pub struct F16;
pub struct F32;

impl Element for Bf16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const u8) -> S::F {
        // SAFETY: as the caller vouches.
        simd.shl::<16>(unsafe { simd.load_u16(p.cast()) })
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(simd: S, p: *mut u8, v: S::F) {
        // SAFETY: as the caller vouches.
        unsafe { simd.store_u16(p.cast(), simd.to_bf16(v)) }
    }
}

impl Element for F16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const u8) -> S::F {
        // SAFETY: as the caller vouches.
        simd.f16_value(unsafe { simd.load_u16(p.cast()) })
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(simd: S, p: *mut u8, v: S::F) {
        // SAFETY: as the caller vouches.
        unsafe { simd.store_u16(p.cast(), simd.to_f16(v)) }
    }
}

impl Element for F32 {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, p: *const u8) -> S::F {
        // SAFETY: as the caller vouches.
        unsafe { simd.load(p.cast()) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(simd: S, p: *mut u8, v: S::F) {
        const CANONICAL_NAN: u32 = 0x7FFF_FFFF;
        // SAFETY: as the caller vouches.
        unsafe { simd.store(p.cast(), simd.select_number(v, v, simd.splat_bits(CANONICAL_NAN))) }
    }
}
