//! The vector instructions that the CPU backend is written in, one implementation for each instruction set.
//!
//! A value of a [`Simd`] type is the proof that the machine has the instructions: it is made only by detection. All
//! methods are inlined into a function that enables the instruction set ([`super::isa::Isa::run`]); nothing else may
//! hold generic code over [`Simd`].

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(all(test, target_arch = "x86_64"))]
pub use avx512::BF16_AS_FLOATS;
#[cfg(target_arch = "x86_64")]
pub use avx512::{Avx512, BF16, FLOATS};
pub use portable::Portable;

use crate::num::{bf16, e4m3, f16};

/// `LANES` floats and what can be done with them. Bit operations see each lane as a `u32`.
///
/// Methods that take pointers read or write `LANES` elements there, at any alignment.
pub trait Simd: Copy + Send + Sync {
    type F: Copy;
    const LANES: usize;
    /// Rows in a register block of decode's two products, which is two vectors wide: at most 12.
    const BLOCK_ROWS: usize;
    /// Decode multiplies pairs of BF16 numbers, two in a lane, instead of floats: [`Simd::dot_bf16`].
    const PAIRS: bool;

    fn splat(self, x: f32) -> Self::F;
    /// # Safety
    /// `p` is valid for reads of `LANES` floats.
    unsafe fn load(self, p: *const f32) -> Self::F;
    /// # Safety
    /// `p` is valid for writes of `LANES` floats.
    unsafe fn store(self, p: *mut f32, v: Self::F);

    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, fused where the instruction set can.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;

    fn and(self, a: Self::F, b: Self::F) -> Self::F;
    fn or(self, a: Self::F, b: Self::F) -> Self::F;
    fn add_bits(self, a: Self::F, b: Self::F) -> Self::F;
    fn shl<const N: u32>(self, a: Self::F) -> Self::F;
    fn shr<const N: u32>(self, a: Self::F) -> Self::F;

    /// `x` where `a < b`, else `y` (NaN compares false).
    fn select_less(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// `x` where `a` is a number, `y` where it is NaN.
    fn select_number(self, a: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// `x` in the first `n` lanes, `y` in the others.
    fn select_first(self, n: usize, x: Self::F, y: Self::F) -> Self::F;

    fn sum(self, v: Self::F) -> f32;
    /// The largest lane; none is NaN.
    fn max_lane(self, v: Self::F) -> f32;
    /// The sums of four vectors.
    fn sum4(self, v: [Self::F; 4]) -> [f32; 4];

    /// `LANES` 16-bit numbers, zero-extended.
    ///
    /// # Safety
    /// `p` is valid for reads of `LANES` u16.
    unsafe fn load_u16(self, p: *const u16) -> Self::F;
    /// Lanes below 65536 as 16-bit numbers.
    ///
    /// # Safety
    /// `p` is valid for writes of `LANES` u16.
    unsafe fn store_u16(self, p: *mut u16, v: Self::F);
    /// Lanes below 256 as bytes.
    ///
    /// # Safety
    /// `p` is valid for writes of `LANES` bytes.
    unsafe fn store_u8(self, p: *mut u8, v: Self::F);
    /// Half-precision bits (in the low 16) to their value.
    fn f16_value(self, bits: Self::F) -> Self::F;
    /// Nearest half-precision bits (in the low 16), for anything but NaN.
    fn f16_bits(self, v: Self::F) -> Self::F;

    /// The values of 32 E4M3 codes: the first 16 to `low`, the others to `high`. True, with NaN codes decoded to
    /// anything, when there was a NaN.
    ///
    /// # Safety
    /// `codes` is valid for reads of 32 bytes, `low` and `high` for writes of 16 floats each.
    unsafe fn decode_e4m3(self, codes: *const u8, low: *mut f32, high: *mut f32) -> bool;
    /// Eight BF16 numbers to floats.
    ///
    /// # Safety
    /// `from` is valid for reads of 16 bytes, `to` for writes of 8 floats.
    unsafe fn widen_bf16(self, from: *const u8, to: *mut f32);

    /// The values of 32 E4M3 codes in BF16, which has them all, in an order of the implementation's own: that from
    /// which [`Simd::interleave`] gets back to the codes'. With `swapped` the second 16 codes are taken first. True
    /// when there was a NaN.
    ///
    /// # Safety
    /// `codes` is valid for reads of 32 bytes, `to` for writes of 32 numbers.
    #[inline(always)]
    unsafe fn decode_e4m3_bf16(self, codes: *const u8, swapped: bool, to: *mut u16) -> bool {
        let mut nan = false;
        for i in 0..32 {
            // SAFETY: the caller vouches for 32 codes and numbers.
            unsafe {
                let code = *codes.add(if swapped { i ^ 16 } else { i });
                nan |= code & 0x7F == e4m3::NAN;
                to.add(i).write((e4m3::decode(code).to_bits() >> 16) as u16);
            }
        }
        nan
    }

    /// `2 * LANES` BF16 numbers of two rows, as [`Simd::decode_e4m3_bf16`] leaves them, in pairs: one of `even` in the
    /// low half of a lane, one of `odd` in the high half, in the codes' order.
    ///
    /// # Safety
    /// Both are valid for reads of `2 * LANES` numbers and begin a multiple of that many into 32 decoded ones.
    #[inline(always)]
    unsafe fn interleave(self, even: *const u16, odd: *const u16) -> [Self::F; 2] {
        // SAFETY: the caller vouches for `2 * LANES` numbers at either.
        unsafe {
            let pairs = |at: usize| self.or(self.load_u16(even.add(at)), self.shl::<16>(self.load_u16(odd.add(at))));
            [pairs(0), pairs(Self::LANES)]
        }
    }

    /// `sum` and the products of BF16 numbers that share a half of a lane in `a` and `b`. Denormals may count as 0.
    #[inline(always)]
    fn dot_bf16(self, a: Self::F, b: Self::F, sum: Self::F) -> Self::F {
        let high = self.splat_bits(0xFFFF_0000);
        let sum = self.mul_add(self.and(a, high), self.and(b, high), sum);
        self.mul_add(self.shl::<16>(a), self.shl::<16>(b), sum)
    }

    #[inline(always)]
    fn splat_bits(self, bits: u32) -> Self::F {
        self.splat(f32::from_bits(bits))
    }

    #[inline(always)]
    fn abs(self, v: Self::F) -> Self::F {
        self.and(v, self.splat_bits(0x7FFF_FFFF))
    }

    /// E4M3 codes in the low bytes, as [`e4m3::encode`].
    #[inline(always)]
    fn to_e4m3(self, v: Self::F) -> Self::F {
        let sign = self.and(self.shr::<24>(v), self.splat_bits(0x80));
        let magnitude = self.min(self.abs(v), self.splat(e4m3::MAX));
        let odd = self.and(self.shr::<20>(magnitude), self.splat_bits(1));
        let rounded = self.add_bits(self.add_bits(magnitude, self.splat_bits(0x7FFFF)), odd);
        let normal = self.add_bits(self.shr::<20>(rounded), self.splat_bits(0u32.wrapping_sub(120 << 3)));
        let magic = self.add(magnitude, self.splat(e4m3::SUBNORMAL_MAGIC));
        let subnormal = self.add_bits(magic, self.splat_bits(0u32.wrapping_sub(e4m3::SUBNORMAL_MAGIC.to_bits())));
        let code = self.select_less(magnitude, self.splat(e4m3::MIN_NORMAL), subnormal, normal);
        self.select_number(v, self.or(code, sign), self.splat_bits(e4m3::NAN.into()))
    }

    /// The nearest E4M3 value, saturating at 448; a NaN stays one.
    #[inline(always)]
    fn round_e4m3(self, v: Self::F) -> Self::F {
        // Adding 1.5 * 2^20 times the value's own power of two leaves three mantissa bits; below the smallest normal
        // that power stays where it is.
        let v = self.min(self.splat(e4m3::MAX), v);
        let power = self.and(v, self.splat_bits(0x7F80_0000));
        let power = self.max(power, self.splat(e4m3::MIN_NORMAL));
        let magic = self.add_bits(power, self.splat_bits(20 << 23 | 1 << 22));
        self.sub(self.add(v, magic), magic)
    }

    /// BF16 bits in the low halves, as [`bf16::encode`].
    #[inline(always)]
    fn to_bf16(self, v: Self::F) -> Self::F {
        let odd = self.and(self.shr::<16>(v), self.splat_bits(1));
        let rounded = self.add_bits(self.add_bits(v, self.splat_bits(0x7FFF)), odd);
        self.select_number(v, self.shr::<16>(rounded), self.splat_bits(bf16::NAN.into()))
    }

    /// F16 bits in the low halves, as [`f16::encode`].
    #[inline(always)]
    fn to_f16(self, v: Self::F) -> Self::F {
        self.select_number(v, self.f16_bits(v), self.splat_bits(f16::NAN.into()))
    }

    /// e^x for x <= 0, within two units in the last place; 0 below -87; NaN stays NaN.
    #[inline(always)]
    fn exp(self, x: Self::F) -> Self::F {
        const LOWEST: f32 = -87.0;
        // 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits.
        const ROUND: f32 = 12_582_912.0;
        // ln 2 in two parts; multiples of the first by up to 127 are exact.
        const LN2_HIGH: f32 = 0.693_359_4;
        const LN2_LOW: f32 = -2.121_944_4e-4;
        let clamped = self.max(self.splat(LOWEST), x);
        let magic = self.mul_add(clamped, self.splat(std::f32::consts::LOG2_E), self.splat(ROUND));
        let n = self.sub(magic, self.splat(ROUND));
        let r = self.mul_add(n, self.splat(-LN2_HIGH), clamped);
        let r = self.mul_add(n, self.splat(-LN2_LOW), r);
        let mut p = self.splat(1.987_569_2e-4);
        for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = self.mul_add(p, r, self.splat(c));
        }
        let p = self.add(self.mul_add(p, self.mul(r, r), r), self.splat(1.0));
        let power = self.add_bits(self.shl::<23>(magic), p);
        let power = self.select_number(x, power, x);
        self.select_less(x, self.splat(LOWEST), self.splat(0.0), power)
    }
}
