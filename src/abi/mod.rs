//! The C ABI: types, and (with the guard around each) functions.
#[allow(non_camel_case_types)]
pub mod types;
