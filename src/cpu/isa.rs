//! Which instruction set the backend uses, and how generic code gets compiled for it.

#[cfg(all(test, target_arch = "x86_64"))]
use super::simd::BF16_AS_FLOATS;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512, BF16, FLOATS};
use super::simd::{Portable, Simd};
use crate::error::{Error, Result};

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
    Avx512Bf16(Avx512<BF16>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512<FLOATS>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
    /// What the BF16 products come to, on machines that have none.
    #[cfg(all(test, target_arch = "x86_64"))]
    Avx512Pairs(Avx512<BF16_AS_FLOATS>),
    #[cfg(test)]
    PortablePairs(Portable<true>),
}

/// Names, from the least instruction set to the best.
const NAMES: [&str; 4] = ["portable", "avx2", "avx512", "avx512_bf16"];

/// The environment variable that names the best one to be used.
const BOUND: &str = "SNAPMLA_MAX_CPU_ISA";

impl Isa {
    /// The best one that the environment variable allows.
    pub fn of_environment() -> Result<Self> {
        std::env::var_os(BOUND).map_or(Ok(Self::detect()), |bound| Self::at_most(&bound.to_string_lossy()))
    }

    fn at_most(bound: &str) -> Result<Self> {
        let rank = |name: &str| NAMES.iter().position(|&known| known == name);
        let Some(most) = rank(bound) else {
            return Err(Error::invalid(format!("{BOUND} is \"{bound}\", not one of {}", NAMES.join(", "))));
        };
        let best = Self::found().into_iter().rfind(|isa| rank(isa.name()) <= Some(most));
        Ok(best.unwrap_or(Isa::Portable(Portable)))
    }

    /// The best one.
    pub fn detect() -> Self {
        Self::found().pop().unwrap_or(Isa::Portable(Portable))
    }

    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16(_) => "avx512_bf16",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => "avx2",
            Isa::Portable(_) => "portable",
            #[cfg(all(test, target_arch = "x86_64"))]
            Isa::Avx512Pairs(_) => "avx512, bf16 as floats",
            #[cfg(test)]
            Isa::PortablePairs(_) => "portable, bf16 as floats",
        }
    }

    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            // SAFETY: the value says that the instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16(simd) => unsafe { run_avx512_bf16(kernel, simd) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => unsafe { run_avx512(kernel, simd) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => unsafe { run_avx2(kernel, simd) },
            Isa::Portable(simd) => kernel.run(simd),
            // SAFETY: as above.
            #[cfg(all(test, target_arch = "x86_64"))]
            Isa::Avx512Pairs(simd) => unsafe { run_avx512(kernel, simd) },
            #[cfg(test)]
            Isa::PortablePairs(simd) => kernel.run(simd),
        }
    }

    /// Every one that this machine has, from the least to the best.
    fn found() -> Vec<Self> {
        let mut found = vec![Isa::Portable(Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            found.extend(Avx2::detect().map(Isa::Avx2));
            found.extend(Avx512::detect().map(Isa::Avx512));
            found.extend(Avx512::detect().map(Isa::Avx512Bf16));
        }
        found
    }

    /// Every one that this machine has, and those that are there for tests.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let mut all = Self::found();
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx512::detect().map(Isa::Avx512Pairs));
        all.push(Isa::PortablePairs(Portable));
        all
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn run_avx512_bf16<K: Kernel>(kernel: K, simd: Avx512<BF16>) -> K::Output {
    kernel.run(simd)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn run_avx512<K: Kernel, const PRODUCTS: u8>(kernel: K, simd: Avx512<PRODUCTS>) -> K::Output {
    kernel.run(simd)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K, simd: Avx2) -> K::Output {
    kernel.run(simd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_and_a_wrong_one_is_named() {
        for (rank, bound) in NAMES.iter().enumerate() {
            let name = Isa::at_most(bound).unwrap().name();
            assert!(NAMES[..=rank].contains(&name), "{name} at most {bound}");
        }
        assert_eq!(Isa::at_most(NAMES[3]).unwrap(), Isa::detect());
        let error = Isa::at_most("avx3").unwrap_err();
        assert!(error.message.contains("SNAPMLA_MAX_CPU_ISA is \"avx3\", not one of portable, avx2"), "{error}");
    }
}
