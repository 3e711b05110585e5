//! Which instruction set the backend uses, and how generic code gets compiled for it.

#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Portable, Simd};

/// Work written once over [`Simd`]. `run` must be `#[inline(always)]`, like everything generic that it calls: only so
/// does it end up in a function that has the instructions enabled.
pub trait Kernel {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
}

impl Isa {
    /// The best one.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = Avx512::detect() {
            return Isa::Avx512(simd);
        } else if let Some(simd) = Avx2::detect() {
            return Isa::Avx2(simd);
        }
        Isa::Portable(Portable)
    }

    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => "avx2",
            Isa::Portable(_) => "portable",
        }
    }

    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            // SAFETY: the value says that the instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => unsafe { run_avx512(kernel, simd) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => unsafe { run_avx2(kernel, simd) },
            Isa::Portable(simd) => kernel.run(simd),
        }
    }

    /// Every one that this machine has.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Isa::Portable(Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Avx2::detect().map(Isa::Avx2));
            all.extend(Avx512::detect().map(Isa::Avx512));
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn run_avx512<K: Kernel>(kernel: K, simd: Avx512) -> K::Output {
    kernel.run(simd)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K, simd: Avx2) -> K::Output {
    kernel.run(simd)
}
