//! One Hopper device and its primary context, which the CUDA runtime (and so most engines) works in too.

use std::ffi::CStr;
use std::os::raw::c_int;
use std::ptr;

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::driver::{CudaResult, Driver};
use crate::error::{Error, Result};

/// Multiprocessors that a launch makes use of: all that a GPU of compute capability 9.0 has. Decode's merge counts on it
/// (`MAX_WORKERS` in `cuda/decode/config.cuh`).
const MAX_SMS: u32 = 144;

pub struct Device {
    driver: &'static Driver,
    ordinal: c_int,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    num_sms: u32,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// Retains the primary context of device `ordinal`, which must be of compute capability 9.0.
    pub fn open(ordinal: c_int) -> Result<Self> {
        let driver = Driver::get()?;
        if ordinal < 0 {
            return Err(Error::invalid(format!("device_ordinal is {ordinal}, less than 0")));
        }
        let mut count = 0;
        // SAFETY: a valid place for one integer.
        unsafe { driver.cuDeviceGetCount(&mut count) }?;
        if ordinal >= count {
            return Err(Error::unavailable(format!("device_ordinal is {ordinal}, and CUDA sees {count} devices")));
        }
        let mut handle = 0;
        // SAFETY: a valid place for one handle.
        unsafe { driver.cuDeviceGet(&mut handle, ordinal) }?;
        let name = name(driver, handle)?;
        let attribute = |which| attribute(driver, handle, which);
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if (major, minor) != (9, 0) {
            return Err(Error::unavailable(format!(
                "device {ordinal} ({name}) has compute capability {major}.{minor}; the kernels need 9.0 (Hopper)"
            )));
        }
        let num_sms = (attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32).min(MAX_SMS);
        let mut context = ptr::null_mut();
        // SAFETY: a valid place for one handle; released when the device is dropped.
        unsafe { driver.cuDevicePrimaryCtxRetain(&mut context, handle) }?;
        Ok(Self { driver, ordinal, handle, context, name, num_sms })
    }

    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub fn ordinal(&self) -> c_int {
        self.ordinal
    }

    pub fn handle(&self) -> sys::CUdevice {
        self.handle
    }

    pub fn context(&self) -> sys::CUcontext {
        self.context
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn num_sms(&self) -> u32 {
        self.num_sms
    }

    /// Whether the device reads ordinary host memory through the host's own page tables, as Grace Hopper does.
    pub fn shares_host_page_tables(&self) -> Result<bool> {
        let which = Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
        Ok(attribute(self.driver, self.handle, which)? != 0)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once, in `open`. At process exit the driver may be gone already; nothing is left to release.
        let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease(self.handle) };
    }
}

fn attribute(driver: &Driver, handle: sys::CUdevice, which: Attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: a valid place for one integer.
    unsafe { driver.cuDeviceGetAttribute(&mut value, which as u32, handle) }?;
    Ok(value)
}

fn name(driver: &Driver, handle: sys::CUdevice) -> Result<String> {
    let mut text = [0; 128];
    // SAFETY: as many bytes as are announced; the driver ends them with a NUL.
    unsafe { driver.cuDeviceGetName(text.as_mut_ptr(), text.len() as c_int, handle) }?;
    // SAFETY: as above.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

/// Runs `call` with `context` current, pushing it only where another one is, and leaves the thread as it was.
pub fn with_context<T>(
    driver: &Driver,
    context: sys::CUcontext,
    call: impl FnOnce() -> CudaResult<T>,
) -> CudaResult<T> {
    let mut current = ptr::null_mut();
    // SAFETY: a valid place for one handle.
    unsafe { driver.cuCtxGetCurrent(&mut current) }?;
    if current == context {
        return call();
    }
    // SAFETY: a context that `Device` holds.
    unsafe { driver.cuCtxPushCurrent(context) }?;
    let result = call();
    // SAFETY: pops what was pushed above.
    unsafe { driver.cuCtxPopCurrent(&mut current) }?;
    result
}
