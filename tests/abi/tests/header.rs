//! Every struct, field, constant and signature of the header is what the library has.

mod generated {
    #![allow(warnings, clippy::all)] // ctest2 writes Rust of 2017

    extern crate snapmla; // for its symbols

    use abi_check::bindings::*;
    use std::os::raw::*;

    include!(concat!(env!("OUT_DIR"), "/checks.rs"));

    pub fn run() {
        main()
    }
}

#[test]
fn header_matches_library() {
    generated::run();
}
