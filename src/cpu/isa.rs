//! Which instruction set the backend uses, and how generic code gets compiled for it.

use super::simd::{Portable, Simd};

/// Work written once over [`Simd`]. `run` must be `#[inline(always)]`, like everything generic that it calls.
pub trait Kernel {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Portable(Portable),
}

impl Isa {
    /// The best one.
    pub fn detect() -> Self {
        Isa::Portable(Portable)
    }

    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable(_) => "portable",
        }
    }

    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Isa::Portable(simd) => kernel.run(simd),
        }
    }

    /// Every one that this machine has.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        vec![Isa::Portable(Portable)]
    }
}
