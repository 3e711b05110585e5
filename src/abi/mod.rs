//! The C ABI: types, and (with the guard around each) functions.
//!
//! Every function does the same four things: enter the handles, copy the caller's struct, make a validated request
//! of it, hand that to the backend. Their doc comments are the C header's, so what the caller must uphold is written
//! there as prose instead of under a "Safety" heading.
#![allow(clippy::missing_safety_doc)]

pub mod cache;
pub mod context;
pub mod decode;
pub mod fetch;
mod guard;
mod handle;
pub mod k_append;
pub mod merge;
mod out;
pub mod q_quant;
mod read;
pub mod records_copy;
pub mod released;
mod stream;
pub mod support;
#[allow(non_camel_case_types)]
pub mod types;
pub mod version;

pub use stream::snapmla_stream;

const _: () = assert!(size_of::<usize>() == 8, "the ABI is defined for 64-bit targets");
