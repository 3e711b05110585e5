//! FP8 multi-head latent attention decoding behind a C ABI.
//!
//! Data flows one way: the caller's struct, [`abi`] (panic guard, sizes, NULLs), a validated [`request`], a backend
//! ([`cpu`] or [`cuda`]), its kernels. [`layout`] says where a record's bytes lie; [`plan`] the shape of a
//! CUDA decode.

pub mod abi;
pub mod backend;
pub mod cpu;
pub mod cuda;
pub mod error;
pub mod layout;
pub mod num;
pub mod plan;
pub mod request;
