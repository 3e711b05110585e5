//! The CUDA backend's host side without a GPU: a stand-in `libcuda.so.1` records what it is asked for.

mod allocations;
mod cache;
mod harness;
mod launching;
mod loading;
mod opening;
mod operations;
mod pointers;
