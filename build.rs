//! The C header, and how the shared library is linked.

#[path = "build/header.rs"]
mod header;
#[path = "build/soname.rs"]
mod soname;

fn main() {
    println!("cargo::rerun-if-changed=build");
    header::generate();
    soname::set();
}
