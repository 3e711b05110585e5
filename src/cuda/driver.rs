//! The calls of the CUDA driver that this library uses, found at run time.
//!
//! cudarc gives the types and finds the library; its wrapper functions panic on a missing symbol and read the result
//! into a Rust enum, which a newer driver's error code would break. So every symbol is looked up once, here, with the
//! result as the plain integer it is.

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;

use cudarc::driver::sys;
use once_cell::sync::OnceCell;

use super::shared_library::is_installed;
use crate::abi::types::*;
use crate::error::{Error, Result};

/// The first driver with `cuLibrary*` and `cuKernel*`.
const OLDEST_DRIVER: c_int = 12_000;

/// A driver call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaError {
    pub code: c_int,
    pub call: &'static str,
    name: &'static CStr,
}

pub type CudaResult<T = ()> = std::result::Result<T, CudaError>;

impl CudaError {
    /// "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1)"
    pub fn text(&self) -> String {
        format!("{}: {} ({})", self.call, self.name.to_string_lossy(), self.code)
    }
}

impl From<CudaError> for Error {
    fn from(error: CudaError) -> Self {
        let status = if error.code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as c_int {
            SNAPMLA_STATUS_OUT_OF_MEMORY
        } else {
            SNAPMLA_STATUS_CUDA_ERROR
        };
        Error::new(status, error.text())
    }
}

/// Declares the calls: one method each, which turns a code other than 0 into a [`CudaError`].
macro_rules! driver_calls {
    ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_snake_case)]
        struct Symbols {
            $($name: unsafe extern "C" fn($($ty),*) -> c_int,)*
        }

        impl Symbols {
            fn load() -> std::result::Result<Self, &'static str> {
                // SAFETY: the caller has seen that the library is there. Each symbol has the type that cuda.h gives it.
                unsafe {
                    let library = sys::culib();
                    Ok(Self { $($name: *library.get(concat!($symbol, "\0").as_bytes()).map_err(|_| $symbol)?,)* })
                }
            }
        }

        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Driver {
            $(
                /// # Safety
                /// As cuda.h says.
                pub unsafe fn $name(&self, $($arg: $ty),*) -> CudaResult {
                    // SAFETY: the caller's promise.
                    let code = unsafe { (self.symbols.$name)($($arg),*) };
                    if code == 0 { Ok(()) } else { Err(self.error(code, stringify!($name))) }
                }
            )*
        }
    };
}

driver_calls! {
    cuInit = "cuInit" (flags: c_uint);
    cuDriverGetVersion = "cuDriverGetVersion" (version: *mut c_int);
    cuGetErrorName = "cuGetErrorName" (code: c_int, name: *mut *const c_char);
    cuDeviceGetCount = "cuDeviceGetCount" (count: *mut c_int);
    cuDeviceGet = "cuDeviceGet" (device: *mut sys::CUdevice, ordinal: c_int);
    cuDeviceGetName = "cuDeviceGetName" (name: *mut c_char, len: c_int, device: sys::CUdevice);
    cuDeviceGetAttribute = "cuDeviceGetAttribute" (value: *mut c_int, attribute: c_uint, device: sys::CUdevice);
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" (context: *mut sys::CUcontext, device: sys::CUdevice);
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2" (device: sys::CUdevice);
    cuCtxGetCurrent = "cuCtxGetCurrent" (context: *mut sys::CUcontext);
    cuCtxPushCurrent = "cuCtxPushCurrent_v2" (context: sys::CUcontext);
    cuCtxPopCurrent = "cuCtxPopCurrent_v2" (context: *mut sys::CUcontext);
    cuLibraryLoadData = "cuLibraryLoadData" (
        library: *mut sys::CUlibrary, code: *const c_void,
        jit_options: *mut c_uint, jit_values: *mut *mut c_void, num_jit_options: c_uint,
        library_options: *mut c_uint, library_values: *mut *mut c_void, num_library_options: c_uint
    );
    cuLibraryUnload = "cuLibraryUnload" (library: sys::CUlibrary);
    cuLibraryGetKernel = "cuLibraryGetKernel" (
        kernel: *mut sys::CUkernel, library: sys::CUlibrary, name: *const c_char
    );
    cuKernelSetAttribute = "cuKernelSetAttribute" (
        attribute: c_uint, value: c_int, kernel: sys::CUkernel, device: sys::CUdevice
    );
    cuKernelGetFunction = "cuKernelGetFunction" (function: *mut sys::CUfunction, kernel: sys::CUkernel);
    cuFuncGetAttribute = "cuFuncGetAttribute" (value: *mut c_int, attribute: c_uint, function: sys::CUfunction);
    cuLaunchKernelEx = "cuLaunchKernelEx" (
        config: *const sys::CUlaunchConfig, function: sys::CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void
    );
    cuMemsetD2D8Async = "cuMemsetD2D8Async" (
        dst: sys::CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: sys::CUstream
    );
    cuPointerGetAttribute = "cuPointerGetAttribute" (data: *mut c_void, attribute: c_uint, ptr: sys::CUdeviceptr);
}

pub struct Driver {
    symbols: Symbols,
    /// 1000 * major + 10 * minor.
    version: c_int,
}

impl Driver {
    /// The driver of this process, initialised. A failure is not remembered: the next call tries again.
    pub fn get() -> Result<&'static Self> {
        static DRIVER: OnceCell<Driver> = OnceCell::new();
        DRIVER.get_or_try_init(Self::load)
    }

    fn load() -> Result<Self> {
        if !is_installed("cuda") {
            return Err(Error::unavailable("the CUDA driver is not installed (libcuda.so.1 not found)"));
        }
        let symbols = Symbols::load()
            .map_err(|symbol| Error::unavailable(format!("the CUDA driver is too old: it has no {symbol}")))?;
        let mut driver = Self { symbols, version: 0 };
        let mut version = 0;
        // SAFETY: a valid place for one integer.
        unsafe { driver.cuDriverGetVersion(&mut version) }.map_err(|e| Error::unavailable(e.text()))?;
        if version < OLDEST_DRIVER {
            let (have, need) = (version_text(version), version_text(OLDEST_DRIVER));
            return Err(Error::unavailable(format!("the CUDA driver serves CUDA {have}, older than {need}")));
        }
        driver.version = version;
        // SAFETY: no pointers.
        unsafe { driver.cuInit(0) }.map_err(|e| Error::unavailable(e.text()))?;
        Ok(driver)
    }

    pub fn version(&self) -> c_int {
        self.version
    }

    fn error(&self, code: c_int, call: &'static str) -> CudaError {
        let mut name = ptr::null();
        // SAFETY: a valid place for one pointer. Only a code without a name makes this call fail, and not twice.
        if call != "cuGetErrorName" && unsafe { self.cuGetErrorName(code, &mut name) }.is_ok() {
            // SAFETY: the driver's names live as long as the driver.
            return CudaError { code, call, name: unsafe { CStr::from_ptr(name) } };
        }
        CudaError { code, call, name: c"an error without a name" }
    }
}

/// "12.4" for 12040.
pub fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
