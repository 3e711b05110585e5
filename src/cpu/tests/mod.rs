//! Tests of the whole backend, against definitions one element at a time.

mod bytes;
mod fixture;
mod merge;
mod moves;
