//! What the tests of the C ABI share.

#[allow(non_camel_case_types)]
pub mod bindings;
pub mod consumer;
pub mod library;
