//! The CUDA kernels, the C header, and how the shared library is linked.

#[path = "build/cuda.rs"]
mod cuda;
#[path = "build/header.rs"]
mod header;
#[path = "build/soname.rs"]
mod soname;

fn main() {
    println!("cargo::rerun-if-changed=build");
    cuda::build();
    header::generate();
    soname::set();
}
