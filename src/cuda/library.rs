//! The kernels' code as the driver holds it: once a process, for whatever devices.

use std::ffi::CString;
use std::ptr;

use cudarc::driver::sys::{self, CUresult};
use once_cell::sync::OnceCell;

use super::device::Device;
use super::driver::{CudaError, CudaResult, Driver, version_text};
use super::images::{self, Image};
use super::kernels::Kernels;
use crate::error::{Error, Result};

/// One loaded module.
struct Library {
    driver: &'static Driver,
    module: &'static str,
    handle: sys::CUlibrary,
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: loaded once, in `Libraries::load`, and no kernel of it is in use: only a set that failed is dropped.
        let _ = unsafe { self.driver.cuLibraryUnload(self.handle) };
    }
}

/// Every module.
pub struct Libraries(Vec<Library>);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Libraries {}
// SAFETY: as above.
unsafe impl Sync for Libraries {}

impl Libraries {
    /// The process's modules, loaded by the first device that opens. A failure is not remembered.
    pub fn get(device: &Device) -> Result<&'static Self> {
        static LIBRARIES: OnceCell<Libraries> = OnceCell::new();
        LIBRARIES.get_or_try_init(|| Self::load(device))
    }

    /// The build's cubins where the driver takes them; else what NVRTC compiles.
    fn load(device: &Device) -> Result<Self> {
        let images = images::compiled_at_build();
        let reason = if images.is_empty() {
            String::from("this build embeds no compiled kernels")
        } else {
            match Self::try_images(device, &images) {
                Ok(libraries) => return Ok(libraries),
                Err(error) if is_mismatch(&error) => {
                    format!(
                        "the driver (CUDA {}) refuses the compiled kernels: {}",
                        version_text(device.driver().version()),
                        error.text()
                    )
                }
                Err(error) => return Err(error.into()),
            }
        };
        let compiled = images::compiled_now()
            .map_err(|e| Error::unavailable(format!("{reason}, and they cannot be compiled here: {e}")))?;
        Ok(Self::try_images(device, &compiled)?)
    }

    /// Loads `images` and tries every kernel on `device`: the driver may look at the code only then.
    fn try_images(device: &Device, images: &[Image]) -> CudaResult<Self> {
        let driver = device.driver();
        let mut libraries = Self(Vec::with_capacity(images.len()));
        for Image { module, code } in images {
            let mut handle = ptr::null_mut();
            let none = ptr::null_mut();
            // SAFETY: a whole ELF image, which the driver copies.
            unsafe {
                let code = code.as_ptr().cast();
                driver.cuLibraryLoadData(&mut handle, code, none, ptr::null_mut(), 0, none, ptr::null_mut(), 0)
            }?;
            libraries.0.push(Library { driver, module, handle });
        }
        Kernels::bind(&libraries, device)?;
        Ok(libraries)
    }

    /// Kernel `symbol` of `module`.
    pub fn kernel(&self, driver: &Driver, module: &str, symbol: &str) -> CudaResult<sys::CUkernel> {
        let library = self.0.iter().find(|l| l.module == module).map_or(ptr::null_mut(), |l| l.handle);
        let name = CString::new(symbol).unwrap_or_default();
        let mut kernel = ptr::null_mut();
        // SAFETY: a valid place for one handle; a NULL library is an error that the driver reports.
        unsafe { driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) }?;
        Ok(kernel)
    }
}

/// Whether the driver cannot read the code at all, which other code may change.
fn is_mismatch(error: &CudaError) -> bool {
    [
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUresult::CUDA_ERROR_INVALID_IMAGE,
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
    ]
    .iter()
    .any(|&code| code as i32 == error.code)
}
