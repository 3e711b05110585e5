//! Device memory, through the driver.

use std::sync::Arc;

use cudarc::driver::sys;

use super::{Memory, Result};
use crate::device::{Cuda, check};

pub struct Device(pub Arc<Cuda>);

impl Memory for Device {
    fn alloc(&self, bytes: usize, _align: usize) -> Result<*mut u8> {
        self.0.enter()?;
        let mut ptr = 0;
        // SAFETY: an out pointer. Allocations are 256-byte aligned.
        unsafe { check("cuMemAlloc", sys::cuMemAlloc_v2(&mut ptr, bytes.max(1)))? };
        Ok(ptr as *mut u8)
    }

    unsafe fn free(&self, ptr: *mut u8, _bytes: usize) {
        if self.0.enter().is_ok() {
            // SAFETY: the caller's. A failure shows at the next call.
            unsafe { sys::cuMemFree_v2(ptr as u64) };
        }
    }

    unsafe fn upload(&self, to: *mut u8, from: &[u8]) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        self.0.enter()?;
        // SAFETY: the caller's.
        unsafe { check("cuMemcpyHtoD", sys::cuMemcpyHtoD_v2(to as u64, from.as_ptr().cast(), from.len()))? };
        self.0.finish()
    }

    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        self.0.enter()?;
        // SAFETY: the caller's.
        unsafe { check("cuMemcpyDtoH", sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), from as u64, to.len())) }
    }

    unsafe fn fill(&self, at: *mut u8, bytes: usize, value: u8) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.0.enter()?;
        // SAFETY: the caller's.
        unsafe { check("cuMemsetD8", sys::cuMemsetD8_v2(at as u64, value, bytes))? };
        self.0.finish()
    }
}
