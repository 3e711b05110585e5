//! The number formats of the cache and of callers' tensors, one element at a time.
//!
//! These are the definitions. The CPU backend's vector code and the CUDA kernels must give the same bits, which is why
//! every NaN that is written is the canonical one of the PTX conversions.

pub mod bf16;
pub mod e4m3;
pub mod f16;
