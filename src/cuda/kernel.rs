//! One kernel, loaded on one device.

use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};

use super::device::{Device, with_context};
use super::driver::{CudaResult, Driver};
use super::library::Libraries;

/// A kernel whose one parameter is the struct `Args`, by value.
pub struct Kernel<Args> {
    pub(super) driver: &'static Driver,
    pub(super) context: sys::CUcontext,
    pub(super) handle: sys::CUkernel,
    args: PhantomData<fn(Args)>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl<Args> Send for Kernel<Args> {}
// SAFETY: as above.
unsafe impl<Args> Sync for Kernel<Args> {}

impl<Args> Kernel<Args> {
    /// Loads the kernel into `device`'s context now, allowing it `shared` bytes of dynamic shared memory.
    ///
    /// The driver loads lazily by default, and a first launch inside a stream capture would then fail: loading may
    /// synchronise the context.
    pub fn bind(libraries: &Libraries, device: &Device, module: &str, symbol: &str, shared: u32) -> CudaResult<Self> {
        let driver = device.driver();
        let handle = libraries.kernel(driver, module, symbol)?;
        if shared > 0 {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
            // SAFETY: a kernel and a device that the driver gave.
            unsafe { driver.cuKernelSetAttribute(attribute, shared as i32, handle, device.handle()) }?;
        }
        with_context(driver, device.context(), || {
            let (mut function, mut registers) = (ptr::null_mut(), 0);
            // SAFETY: valid places; reading an attribute needs the code, so it is loaded.
            unsafe {
                driver.cuKernelGetFunction(&mut function, handle)?;
                driver.cuFuncGetAttribute(&mut registers, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS as u32, function)
            }
        })?;
        Ok(Self { driver, context: device.context(), handle, args: PhantomData })
    }
}
