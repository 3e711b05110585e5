//! Compares what a call wrote with what it should have written.

mod bytes;
mod rows;

pub use bytes::{first_difference, untouched};
pub use rows::{Expected, Measured, compare};
