//! Tests of the whole backend, against definitions one element at a time.

mod attention;
mod bytes;
mod decode;
mod fixture;
mod merge;
mod moves;
mod slots;
mod speed;
