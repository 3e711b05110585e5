//! Compiles the embedded sources with NVRTC: for a build without nvcc, and for a driver older than the build's nvcc.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{mem, ptr};

use cudarc::nvrtc::sys;

use super::images::Image;
use super::shared_library::is_installed;
use crate::error::{Error, Result};

type Program = *mut c_void;

/// NVRTC takes a generic lambda for a host function, unless told that there are none.
const OPTIONS: [&CStr; 3] = [c"--gpu-architecture=sm_90a", c"--std=c++17", c"--device-as-default-execution-space"];

/// The calls used, with the result as a plain integer: see `driver.rs`.
struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
}

/// One image for each `.cu` file of `sources`, which are pairs of a path below `cuda/` and a text.
pub fn compile(sources: &[(&'static str, &'static str)]) -> Result<Vec<Image>> {
    let nvrtc = Nvrtc::load()?;
    nvrtc.load_builtins();
    let text = |s: &str| CString::new(s).map_err(|_| Error::unavailable(format!("{s:?} holds a NUL")));
    let mut headers = Vec::new();
    for (name, source) in sources.iter().filter(|(name, _)| name.ends_with(".cuh")) {
        headers.push((text(name)?, text(source)?));
    }
    // One after the other: NVRTC holds a lock while it compiles.
    let mut images = Vec::new();
    for (name, source) in sources {
        if let Some(module) = name.strip_suffix(".cu") {
            let code = nvrtc.cubin_of(&text(name)?, &text(source)?, &headers)?;
            images.push(Image { module, code: Cow::Owned(code) });
        }
    }
    Ok(images)
}

impl Nvrtc {
    fn load() -> Result<Self> {
        if !is_installed("nvrtc") {
            return Err(Error::unavailable("NVRTC is not installed (libnvrtc.so not found)"));
        }
        // SAFETY: the library is there. Each symbol has the type that nvrtc.h gives it.
        unsafe {
            let library = sys::culib();
            macro_rules! symbol {
                ($name:literal) => {
                    *library
                        .get(concat!($name, "\0").as_bytes())
                        .map_err(|_| Error::unavailable(concat!("NVRTC is too old: it has no ", $name)))?
                };
            }
            Ok(Self {
                version: symbol!("nvrtcVersion"),
                create: symbol!("nvrtcCreateProgram"),
                compile: symbol!("nvrtcCompileProgram"),
                log_size: symbol!("nvrtcGetProgramLogSize"),
                log: symbol!("nvrtcGetProgramLog"),
                cubin_size: symbol!("nvrtcGetCUBINSize"),
                cubin: symbol!("nvrtcGetCUBIN"),
                destroy: symbol!("nvrtcDestroyProgram"),
            })
        }
    }

    /// NVRTC opens `libnvrtc-builtins.so.X.Y` by its bare name and fails where that is not on the loader's path, as in
    /// a Python environment. Once loaded from beside NVRTC itself it is found. Failing here is left to NVRTC to report.
    fn load_builtins(&self) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: valid places; dladdr fills in a struct about an address that it knows or returns 0.
        unsafe {
            (self.version)(&mut major, &mut minor);
            let mut info: libc::Dl_info = mem::zeroed();
            if libc::dladdr(self.version as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
                return;
            }
            let nvrtc = Path::new(OsStr::from_bytes(CStr::from_ptr(info.dli_fname).to_bytes()));
            let builtins = nvrtc.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
            if let Ok(path) = CString::new(builtins.as_os_str().as_bytes()) {
                libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
            }
        }
    }

    fn cubin_of(&self, name: &CStr, source: &CStr, headers: &[(CString, CString)]) -> Result<Vec<u8>> {
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<_> = headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let options = OPTIONS.map(CStr::as_ptr);
        let failed = |call: &str, code: c_int, more: String| {
            Error::unavailable(format!("{call} of {} failed with {code}{more}", name.to_string_lossy()))
        };
        let mut program = ptr::null_mut();
        // SAFETY: every text outlives the program; sizes are those NVRTC asks for.
        unsafe {
            let (source, name) = (source.as_ptr(), name.as_ptr());
            let code =
                (self.create)(&mut program, source, name, headers.len() as c_int, texts.as_ptr(), names.as_ptr());
            if code != 0 {
                return Err(failed("nvrtcCreateProgram", code, String::new()));
            }
            let code = (self.compile)(program, OPTIONS.len() as c_int, options.as_ptr());
            let result = if code == 0 {
                self.read(program, self.cubin_size, self.cubin)
                    .map_err(|code| failed("nvrtcGetCUBIN", code, String::new()))
            } else {
                let log = self.read(program, self.log_size, self.log).unwrap_or_default();
                Err(failed("nvrtcCompileProgram", code, format!(": {}", String::from_utf8_lossy(&log))))
            };
            (self.destroy)(&mut program);
            result
        }
    }

    /// # Safety
    /// `program` is a live one, and `get` writes as many bytes as `size` says.
    unsafe fn read(
        &self,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> std::result::Result<Vec<u8>, c_int> {
        let mut len = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let code = size(program, &mut len);
            if code != 0 {
                return Err(code);
            }
            let mut bytes = vec![0u8; len];
            let code = get(program, bytes.as_mut_ptr().cast());
            if code == 0 { Ok(bytes) } else { Err(code) }
        }
    }
}
