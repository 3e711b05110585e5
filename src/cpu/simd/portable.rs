//! Plain Rust over short arrays, which the compiler turns into whatever vectors the target always has.

use super::Simd;
use crate::num::{e4m3, f16};

const LANES: usize = 4;

/// With `PAIRS` it multiplies pairs of BF16 numbers, for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portable<const PAIRS: bool = false>;

type F = [f32; LANES];

/// What each lane comes to. Written out: closures handed to the standard library's array functions are not always
/// inlined.
#[inline(always)]
fn lanes<T>(of: impl Fn(usize) -> T) -> [T; LANES] {
    [of(0), of(1), of(2), of(3)]
}

#[inline(always)]
fn zip_bits(a: F, b: F, op: impl Fn(u32, u32) -> u32) -> F {
    lanes(|i| f32::from_bits(op(a[i].to_bits(), b[i].to_bits())))
}

impl<const PAIRS: bool> Simd for Portable<PAIRS> {
    type F = F;
    const LANES: usize = LANES;
    const BLOCK_ROWS: usize = 4;
    const PAIRS: bool = PAIRS;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> F {
        // SAFETY: the caller vouches for LANES floats; read_unaligned needs no alignment.
        unsafe { p.cast::<F>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: F) {
        // SAFETY: the caller vouches for LANES floats; write_unaligned needs no alignment.
        unsafe { p.cast::<F>().write_unaligned(v) }
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        lanes(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        lanes(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        lanes(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        lanes(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: F, b: F, c: F) -> F {
        // Without the instruction a fused multiply-add is a slow library call.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            lanes(|i| a[i].mul_add(b[i], c[i]))
        } else {
            lanes(|i| a[i] * b[i] + c[i])
        }
    }

    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        lanes(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        lanes(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn and(self, a: F, b: F) -> F {
        zip_bits(a, b, |a, b| a & b)
    }

    #[inline(always)]
    fn or(self, a: F, b: F) -> F {
        zip_bits(a, b, |a, b| a | b)
    }

    #[inline(always)]
    fn add_bits(self, a: F, b: F) -> F {
        zip_bits(a, b, |a, b| a.wrapping_add(b))
    }

    #[inline(always)]
    fn shl<const N: u32>(self, a: F) -> F {
        lanes(|i| f32::from_bits(a[i].to_bits() << N))
    }

    #[inline(always)]
    fn shr<const N: u32>(self, a: F) -> F {
        lanes(|i| f32::from_bits(a[i].to_bits() >> N))
    }

    #[inline(always)]
    fn select_less(self, a: F, b: F, x: F, y: F) -> F {
        lanes(|i| if a[i] < b[i] { x[i] } else { y[i] })
    }

    #[inline(always)]
    fn select_number(self, a: F, x: F, y: F) -> F {
        lanes(|i| if a[i].is_nan() { y[i] } else { x[i] })
    }

    #[inline(always)]
    fn select_first(self, n: usize, x: F, y: F) -> F {
        lanes(|i| if i < n { x[i] } else { y[i] })
    }

    #[inline(always)]
    fn sum(self, v: F) -> f32 {
        (v[0] + v[2]) + (v[1] + v[3])
    }

    #[inline(always)]
    fn max_lane(self, v: F) -> f32 {
        v[0].max(v[1]).max(v[2].max(v[3]))
    }

    #[inline(always)]
    fn sum4(self, v: [F; 4]) -> [f32; 4] {
        [self.sum(v[0]), self.sum(v[1]), self.sum(v[2]), self.sum(v[3])]
    }

    #[inline(always)]
    unsafe fn load_u16(self, p: *const u16) -> F {
        // SAFETY: the caller vouches for LANES numbers; read_unaligned needs no alignment.
        let bits = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        lanes(|i| f32::from_bits(bits[i].into()))
    }

    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16, v: F) {
        // SAFETY: the caller vouches for LANES numbers; write_unaligned needs no alignment.
        unsafe { p.cast::<[u16; LANES]>().write_unaligned(lanes(|i| v[i].to_bits() as u16)) }
    }

    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8, v: F) {
        // SAFETY: the caller vouches for LANES bytes.
        unsafe { p.cast::<[u8; LANES]>().write_unaligned(lanes(|i| v[i].to_bits() as u8)) }
    }

    #[inline(always)]
    fn f16_value(self, bits: F) -> F {
        lanes(|i| f16::decode(bits[i].to_bits() as u16))
    }

    #[inline(always)]
    fn f16_bits(self, v: F) -> F {
        lanes(|i| f32::from_bits(f16::encode(v[i]).into()))
    }

    #[inline(always)]
    unsafe fn decode_e4m3(self, codes: *const u8, low: *mut f32, high: *mut f32) -> bool {
        let mut nan = false;
        for (half, to) in [low, high].into_iter().enumerate() {
            for i in 0..16 {
                // SAFETY: the caller vouches for 32 codes and 16 floats at either target.
                unsafe {
                    let code = *codes.add(half * 16 + i);
                    nan |= code & 0x7F == e4m3::NAN;
                    to.add(i).write(e4m3::decode(code));
                }
            }
        }
        nan
    }

    #[inline(always)]
    unsafe fn widen_bf16(self, from: *const u8, to: *mut f32) {
        for i in 0..2 {
            // SAFETY: the caller vouches for 8 numbers at both.
            unsafe { self.store(to.add(i * LANES), self.shl::<16>(self.load_u16(from.cast::<u16>().add(i * LANES)))) }
        }
    }
}
