//! AVX2 with FMA and F16C.

use std::arch::x86_64::*;

use super::Simd;

/// A machine that has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Self> {
        let found =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

/// Intrinsics without memory operands.
macro_rules! have {
    ($call:expr) => {{
        // SAFETY: a value of `Avx2` exists only where detection found the instructions.
        unsafe { $call }
    }};
}

#[inline(always)]
fn bits(v: __m256) -> __m256i {
    have!(_mm256_castps_si256(v))
}

#[inline(always)]
fn floats(v: __m256i) -> __m256 {
    have!(_mm256_castsi256_ps(v))
}

/// The lanes of `v`, all below 65536, as 16-bit numbers.
#[inline(always)]
fn packed(v: __m256) -> __m128i {
    let v = bits(v);
    have!(_mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)))
}

/// `x` where the sign bit of `mask` is set, else `y`.
#[inline(always)]
fn blend(mask: __m256, x: __m256, y: __m256) -> __m256 {
    have!(_mm256_blendv_ps(y, x, mask))
}

impl Simd for Avx2 {
    type F = __m256;
    const LANES: usize = 8;
    const BLOCK_ROWS: usize = 6;
    const PAIRS: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        have!(_mm256_set1_ps(x))
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m256 {
        // SAFETY: the caller vouches for 8 floats.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: __m256) {
        // SAFETY: the caller vouches for 8 floats.
        unsafe { _mm256_storeu_ps(p, v) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_mul_ps(a, b))
    }

    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_div_ps(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        have!(_mm256_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_max_ps(a, b))
    }

    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_min_ps(a, b))
    }

    #[inline(always)]
    fn and(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_and_ps(a, b))
    }

    #[inline(always)]
    fn or(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_or_ps(a, b))
    }

    #[inline(always)]
    fn add_bits(self, a: __m256, b: __m256) -> __m256 {
        floats(have!(_mm256_add_epi32(bits(a), bits(b))))
    }

    #[inline(always)]
    fn shl<const N: u32>(self, a: __m256) -> __m256 {
        floats(have!(_mm256_sll_epi32(bits(a), _mm_cvtsi32_si128(N as i32))))
    }

    #[inline(always)]
    fn shr<const N: u32>(self, a: __m256) -> __m256 {
        floats(have!(_mm256_srl_epi32(bits(a), _mm_cvtsi32_si128(N as i32))))
    }

    #[inline(always)]
    fn select_less(self, a: __m256, b: __m256, x: __m256, y: __m256) -> __m256 {
        blend(have!(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)), x, y)
    }

    #[inline(always)]
    fn select_number(self, a: __m256, x: __m256, y: __m256) -> __m256 {
        blend(have!(_mm256_cmp_ps::<_CMP_ORD_Q>(a, a)), x, y)
    }

    #[inline(always)]
    fn select_first(self, n: usize, x: __m256, y: __m256) -> __m256 {
        let n = n.min(Self::LANES) as i32;
        let lanes = have!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        blend(floats(have!(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes))), x, y)
    }

    #[inline(always)]
    fn sum(self, v: __m256) -> f32 {
        self.sum4([v, v, v, v])[0]
    }

    #[inline(always)]
    fn max_lane(self, v: __m256) -> f32 {
        let v = have!(_mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v)));
        let v = have!(_mm_max_ps(v, _mm_movehl_ps(v, v)));
        have!(_mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v))))
    }

    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        let halves = have!(_mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d)));
        let sums = have!(_mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves)));
        let mut to = [0.0; 4];
        // SAFETY: four floats.
        unsafe { _mm_storeu_ps(to.as_mut_ptr(), sums) };
        to
    }

    #[inline(always)]
    unsafe fn load_u16(self, p: *const u16) -> __m256 {
        // SAFETY: the caller vouches for 8 numbers.
        floats(unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())) })
    }

    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16, v: __m256) {
        // SAFETY: the caller vouches for 8 numbers.
        unsafe { _mm_storeu_si128(p.cast(), packed(v)) }
    }

    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8, v: __m256) {
        let packed = packed(v);
        // SAFETY: the caller vouches for 8 bytes.
        unsafe { _mm_storel_epi64(p.cast(), _mm_packus_epi16(packed, packed)) }
    }

    #[inline(always)]
    fn f16_value(self, v: __m256) -> __m256 {
        have!(_mm256_cvtph_ps(packed(v)))
    }

    #[inline(always)]
    fn f16_bits(self, v: __m256) -> __m256 {
        floats(have!(_mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v))))
    }

    #[inline(always)]
    unsafe fn decode_e4m3(self, codes: *const u8, low: *mut f32, high: *mut f32) -> bool {
        // SAFETY: the caller vouches for 32 codes and twice 16 floats.
        unsafe {
            let all = _mm256_loadu_si256(codes.cast());
            let magnitudes = _mm256_or_si256(all, _mm256_set1_epi8(i8::MIN));
            let nan = _mm256_movemask_epi8(_mm256_cmpeq_epi8(magnitudes, _mm256_set1_epi8(-1))) != 0;
            let bias = _mm256_set1_ps(256.0);
            for (codes, to) in [(_mm256_castsi256_si128(all), low), (_mm256_extracti128_si256::<1>(all), high)] {
                // As a half-precision number, with its exponent bias 8 higher, a code is worth 2^-8 of its value.
                let wide = _mm256_slli_epi16::<7>(_mm256_cvtepi8_epi16(codes));
                let halves = _mm256_and_si256(wide, _mm256_set1_epi16(0xBFFF_u16 as i16));
                let first = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
                let second = _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves));
                _mm256_storeu_ps(to, _mm256_mul_ps(first, bias));
                _mm256_storeu_ps(to.add(8), _mm256_mul_ps(second, bias));
            }
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
