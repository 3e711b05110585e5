//! The CUDA backend without a GPU: a stand-in for libcuda records what it is asked for, and can have the kernels that
//! give a warp a row run on the host.

mod allocations;
mod cache;
mod data;
mod decode;
mod emulation;
mod harness;
mod launching;
mod loading;
mod opening;
mod operations;
mod plans;
mod pointers;
mod results;
