//! AVX-512 (F, BW, DQ, VL), as every server core since 2017 has it.

use std::arch::x86_64::*;

use super::Simd;

/// A machine that has the instructions, and with them AVX2, FMA and F16C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

/// Intrinsics without memory operands.
macro_rules! have {
    ($call:expr) => {{
        // SAFETY: a value of `Avx512` exists only where detection found the instructions.
        unsafe { $call }
    }};
}

#[inline(always)]
fn bits(v: __m512) -> __m512i {
    have!(_mm512_castps_si512(v))
}

#[inline(always)]
fn floats(v: __m512i) -> __m512 {
    have!(_mm512_castsi512_ps(v))
}

impl Simd for Avx512 {
    type F = __m512;
    const LANES: usize = 16;
    const BLOCK_ROWS: usize = 12;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        have!(_mm512_set1_ps(x))
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m512 {
        // SAFETY: the caller vouches for 16 floats.
        unsafe { _mm512_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: __m512) {
        // SAFETY: the caller vouches for 16 floats.
        unsafe { _mm512_storeu_ps(p, v) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_mul_ps(a, b))
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_div_ps(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        have!(_mm512_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_max_ps(a, b))
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_min_ps(a, b))
    }

    #[inline(always)]
    fn and(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_and_ps(a, b))
    }

    #[inline(always)]
    fn or(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_or_ps(a, b))
    }

    #[inline(always)]
    fn add_bits(self, a: __m512, b: __m512) -> __m512 {
        floats(have!(_mm512_add_epi32(bits(a), bits(b))))
    }

    #[inline(always)]
    fn shl<const N: u32>(self, a: __m512) -> __m512 {
        floats(have!(_mm512_slli_epi32::<N>(bits(a))))
    }

    #[inline(always)]
    fn shr<const N: u32>(self, a: __m512) -> __m512 {
        floats(have!(_mm512_srli_epi32::<N>(bits(a))))
    }

    #[inline(always)]
    fn select_less(self, a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
        have!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), y, x))
    }

    #[inline(always)]
    fn select_number(self, a: __m512, x: __m512, y: __m512) -> __m512 {
        have!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_ORD_Q>(a, a), y, x))
    }

    #[inline(always)]
    fn select_first(self, n: usize, x: __m512, y: __m512) -> __m512 {
        let mask = if n < Self::LANES { (1u16 << n) - 1 } else { u16::MAX };
        have!(_mm512_mask_blend_ps(mask, y, x))
    }

    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        have!(_mm512_reduce_add_ps(v))
    }

    #[inline(always)]
    fn max_lane(self, v: __m512) -> f32 {
        have!(_mm512_reduce_max_ps(v))
    }

    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // Transposes and adds within quarters, then adds the quarters.
        let ab = have!(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
        let cd = have!(_mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
        let abcd = have!(_mm512_add_ps(_mm512_shuffle_ps::<0x44>(ab, cd), _mm512_shuffle_ps::<0xEE>(ab, cd)));
        let half = have!(_mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps::<1>(abcd)));
        let sums = have!(_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half)));
        let mut to = [0.0; 4];
        // SAFETY: four floats.
        unsafe { _mm_storeu_ps(to.as_mut_ptr(), sums) };
        to
    }

    #[inline(always)]
    unsafe fn load_u16(self, p: *const u16) -> __m512 {
        // SAFETY: the caller vouches for 16 numbers.
        floats(unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())) })
    }

    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16, v: __m512) {
        // SAFETY: the caller vouches for 16 numbers.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(bits(v))) }
    }

    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8, v: __m512) {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(bits(v))) }
    }

    #[inline(always)]
    fn f16_value(self, v: __m512) -> __m512 {
        have!(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits(v))))
    }

    #[inline(always)]
    fn f16_bits(self, v: __m512) -> __m512 {
        floats(have!(_mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v))))
    }

    #[inline(always)]
    unsafe fn decode_e4m3(self, codes: *const u8, low: *mut f32, high: *mut f32) -> bool {
        // SAFETY: the caller vouches for 32 codes and twice 16 floats.
        unsafe {
            let codes = _mm256_loadu_si256(codes.cast());
            let magnitudes = _mm256_or_si256(codes, _mm256_set1_epi8(i8::MIN));
            let nan = _mm256_cmpeq_epi8_mask(magnitudes, _mm256_set1_epi8(-1)) != 0;
            // As a half-precision number, with its exponent bias 8 higher, a code is worth 2^-8 of its value.
            let wide = _mm512_slli_epi16::<7>(_mm512_cvtepi8_epi16(codes));
            let halves = _mm512_and_si512(wide, _mm512_set1_epi16(0xBFFF_u16 as i16));
            let bias = _mm512_set1_ps(256.0);
            let first = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
            let second = _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(halves));
            _mm512_storeu_ps(low, _mm512_mul_ps(first, bias));
            _mm512_storeu_ps(high, _mm512_mul_ps(second, bias));
            nan
        }
    }

    #[inline(always)]
    unsafe fn widen_bf16(self, from: *const u8, to: *mut f32) {
        // SAFETY: the caller vouches for 8 numbers at both.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide)));
        }
    }
}
