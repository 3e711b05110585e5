//! AVX-512 (F, BW, DQ, VL), as every server core since 2017 has it, and its BF16 products, as many since 2021 have them.

use std::arch::x86_64::*;

use super::Simd;

/// A machine that has the instructions, and with them AVX2, FMA and F16C. `PRODUCTS` says what decode multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512<const PRODUCTS: u8>(());

/// Floats.
pub const FLOATS: u8 = 0;
/// Pairs of BF16 numbers, by the instruction for that.
pub const BF16: u8 = 1;
/// Pairs of BF16 numbers, as floats: for tests.
#[cfg(test)]
pub const BF16_AS_FLOATS: u8 = 2;

impl<const PRODUCTS: u8> Avx512<PRODUCTS> {
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && (PRODUCTS != BF16 || is_x86_feature_detected!("avx512bf16"));
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

impl<const PRODUCTS: u8> Simd for Avx512<PRODUCTS> {
    type F = __m512;
    const LANES: usize = 16;
    const BLOCK_ROWS: usize = 12;
    const PAIRS: bool = PRODUCTS != FLOATS;

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

    // The order of 32 numbers: fours 0, 4, 1, 5, 2, 6, 3, 7, so that the pairs of two rows, which the instructions form
    // from the lower and the upper halves of quarters, come out in the codes' order.
    #[inline(always)]
    unsafe fn decode_e4m3_bf16(self, codes: *const u8, swapped: bool, to: *mut u16) -> bool {
        // SAFETY: the caller vouches for 32 codes and numbers.
        unsafe {
            let fours = if swapped {
                _mm256_setr_epi32(4, 0, 5, 1, 6, 2, 7, 3)
            } else {
                _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)
            };
            let codes = _mm512_cvtepi8_epi16(_mm256_permutevar8x32_epi32(_mm256_loadu_si256(codes.cast()), fours));
            let magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7F));
            let normal = _mm512_add_epi16(_mm512_slli_epi16::<4>(magnitude), _mm512_set1_epi16(120 << 7));
            let tiny = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
            // Below the smallest normal code: 0 to 7 times 2^-9.
            let table =
                _mm512_castsi128_si512(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
            let values = _mm512_mask_permutexvar_epi16(normal, tiny, magnitude, table);
            let nan = _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(0x7F));
            let values = _mm512_mask_mov_epi16(values, nan, _mm512_set1_epi16(0x7FC0));
            let sign = _mm512_and_si512(codes, _mm512_set1_epi16(i16::MIN));
            _mm512_storeu_si512(to.cast(), _mm512_or_si512(values, sign));
            nan != 0
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, even: *const u16, odd: *const u16) -> [__m512; 2] {
        // SAFETY: the caller vouches for 32 numbers at either.
        let (even, odd) = unsafe { (_mm512_loadu_si512(even.cast()), _mm512_loadu_si512(odd.cast())) };
        let halves = have!((_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd)));
        [floats(halves.0), floats(halves.1)]
    }

    #[inline(always)]
    fn dot_bf16(self, a: __m512, b: __m512, sum: __m512) -> __m512 {
        if PRODUCTS == BF16 {
            // SAFETY: the types have the same size, and any bits are values of both.
            let pairs = |v: __m512| unsafe { std::mem::transmute::<__m512, __m512bh>(v) };
            return have!(_mm512_dpbf16_ps(sum, pairs(a), pairs(b)));
        }
        let high = self.splat_bits(0xFFFF_0000);
        let sum = self.mul_add(self.and(a, high), self.and(b, high), sum);
        self.mul_add(self.shl::<16>(a), self.shl::<16>(b), sum)
    }
}
