//! Builds the stand-ins, runs each test in a process of its own that finds them, and reads what they recorded.

use std::env;
use std::ffi::{CStr, CString};
use std::fs;
use std::os::raw::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;

use snapmla::cuda::Cuda;

/// Tells a child process that the stand-ins are on its loader's path.
const MARK: &str = "SNAPMLA_TEST_FAKE_DRIVER";

/// Declares tests that each run in a process whose libcuda and NVRTC are the stand-ins.
macro_rules! with_fake_driver {
    ($($tests:tt)*) => { $crate::harness::tests_in_children! { $crate::harness::build; $($tests)* } };
}
pub(crate) use with_fake_driver;

/// Declares tests that run in processes of their own, with the libraries that `$build` makes.
macro_rules! tests_in_children {
    ($build:path; $($(#[$doc:meta])* fn $name:ident($fake:ident) $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            $crate::harness::in_child(concat!(module_path!(), "::", stringify!($name)), $build, |$fake| $body);
        }
    )*};
}
pub(crate) use tests_in_children;

/// Runs `body` in a child process with nothing but test `path` in it, and fails as it fails.
pub fn in_child(path: &str, build: fn() -> &'static Path, body: fn(&Fake)) {
    if env::var_os(MARK).is_some() {
        return body(&Fake::open());
    }
    let (_, name) = path.split_once("::").expect("a test lies in a module");
    let output = Command::new(env::current_exe().expect("the test binary"))
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .env("LD_LIBRARY_PATH", build())
        .output()
        .expect("the test binary runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "in the child process:\n{text}");
    assert!(text.contains("1 passed"), "the child process ran no test:\n{text}");
}

/// The folder with the stand-ins, under every name by which they might be looked for first.
pub fn build() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake_driver");
        fs::create_dir_all(&folder).expect("a folder for the stand-ins");
        compile("driver.c", &folder, "libcuda.so");
        compile("nvrtc.c", &folder, "libnvrtc.so");
        folder
    })
}

fn compile(source: &str, folder: &Path, library: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver").join(source);
    let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(source);
    link(&mut compiler, folder, library);
}

/// Has `compiler` make a shared library in `folder`.
pub fn link(compiler: &mut Command, folder: &Path, library: &str) {
    // Renamed into place: other test processes may be loading the last one.
    let fresh = folder.join(format!("{library}.{}", process::id()));
    // The soname is not libcuda.so.1: a real NVRTC would find a loaded one and ask it for what a stand-in lacks.
    let soname = format!("-Wl,-soname,{library}");
    let status = compiler.args(["-O1", "-shared", "-fPIC", &soname, "-o"]).arg(&fresh).status().expect("a compiler");
    assert!(status.success());
    fs::rename(fresh, folder.join(library)).expect("the library is in place");
}

#[repr(C)]
pub struct Launch {
    kernel: [c_char; 64],
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    num_attributes: u32,
    attribute_ids: [u32; 4],
    attribute_values: [u32; 4],
    pub stream: *mut c_void,
    pub context: *mut c_void,
    args: [u8; 512],
}

impl Launch {
    pub fn kernel(&self) -> &str {
        text(&self.kernel)
    }

    /// (id, value) pairs.
    pub fn attributes(&self) -> Vec<(u32, u32)> {
        let n = self.num_attributes as usize;
        self.attribute_ids[..n].iter().copied().zip(self.attribute_values[..n].iter().copied()).collect()
    }

    /// The 8 bytes of the arguments at `offset`.
    pub fn arg64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.args[offset..offset + 8].try_into().expect("8 bytes"))
    }

    /// The 4 bytes of the arguments at `offset`.
    pub fn arg32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.args[offset..offset + 4].try_into().expect("4 bytes"))
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memset {
    pub dst: u64,
    pub pitch: u64,
    pub width: u64,
    pub height: u64,
    pub value: u32,
    pub stream: *mut c_void,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct Kernel {
    name: [c_char; 64],
    pub num_binds: u32,
    pub shared_allowed: i32,
}

impl Kernel {
    pub fn name(&self) -> &str {
        text(&self.name)
    }
}

fn text(bytes: &[c_char; 64]) -> &str {
    // SAFETY: the stand-in ends its texts with a NUL.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_str().expect("ASCII")
}

/// A run of tiles of one sequence, as `emulation/plan.cpp` passes it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub sequence: u32,
    pub first_tile: u32,
    pub tiles: u32,
    pub length: u32,
    pub q_first: u32,
    pub slot: u32,
    pub split: u32,
    pub splits: u32,
}

/// A split whose sequence's merge a block takes part in, as `cuda/decode/config.cuh` has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    pub sequence: u32,
    pub first_slot: u32,
    pub split: u16,
    pub splits: u16,
}

#[derive(Debug)]
pub struct BlockPlan {
    pub segments: Vec<Segment>,
    /// Of splits of a fixed size only.
    pub merges: Vec<Merge>,
    pub shared_sequences: bool,
}

/// The stand-ins, as the tests see them.
pub struct Fake {
    driver: *mut c_void,
}

/// Calls `fake_*` function `$name` of the library `$handle`.
macro_rules! call {
    ($handle:expr, $name:literal, fn($($ty:ty),*) $(-> $result:ty)?, $($arg:expr),*) => {
        // SAFETY: the type is the one in the C file.
        unsafe {
            let function = symbol($handle, $name);
            let function: unsafe extern "C" fn($($ty),*) $(-> $result)? = std::mem::transmute(function);
            function($($arg),*)
        }
    };
}

fn open(library: &CStr) -> *mut c_void {
    // SAFETY: a stand-in has no constructors.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{library:?} is not on the loader's path");
    handle
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let c_name = CString::new(name).expect("a name");
    // SAFETY: a handle of `open`.
    let symbol = unsafe { libc::dlsym(library, c_name.as_ptr()) };
    assert!(!symbol.is_null(), "{name} is not in the stand-in; is this another library?");
    symbol
}

impl Fake {
    fn open() -> Self {
        Self { driver: open(c"libcuda.so") }
    }

    pub fn set_version(&self, version: c_int) {
        call!(self.driver, "fake_set_version", fn(c_int), version);
    }

    pub fn set_capability(&self, major: c_int, minor: c_int) {
        call!(self.driver, "fake_set_capability", fn(c_int, c_int), major, minor);
    }

    /// As on a machine where the GPU reads the host's page tables.
    pub fn share_host_page_tables(&self) {
        call!(self.driver, "fake_set_host_page_tables", fn(c_int), 1);
    }

    /// What loading a real cubin gives.
    pub fn set_elf_result(&self, code: c_int) {
        call!(self.driver, "fake_set_elf_result", fn(c_int), code);
    }

    /// How many bytes of arguments the next launches have.
    pub fn set_args_size(&self, size: usize) {
        call!(self.driver, "fake_set_args_size", fn(usize), size);
    }

    /// From here on a launch runs its kernel (`emulation/launch.cpp`), and device memory is host memory.
    pub fn emulate(&self) {
        let emulate = symbol(open(c"libkernels.so"), "emulate");
        call!(self.driver, "fake_set_emulation", fn(*mut c_void), emulate);
    }

    /// The plan that block `block` of a decode launch makes.
    pub fn plan(&self, launch: &Launch, block: u32) -> BlockPlan {
        const CAPACITY: usize = 65_536;
        let plan = symbol(open(c"libkernels.so"), "plan");
        let (mut segments, mut merges) = (Vec::with_capacity(CAPACITY), Vec::with_capacity(CAPACITY));
        let (mut num_merges, mut shared_sequences) = (0, 0);
        type Plan = unsafe extern "C" fn(
            *const c_char,
            *const u8,
            u32,
            *mut Segment,
            *mut Merge,
            u32,
            *mut u32,
            *mut u32,
        ) -> u32;
        // SAFETY: the type is the one in the C++ file, which writes that many of each and returns how many segments.
        unsafe {
            let plan: Plan = std::mem::transmute(plan);
            let (at, room) = (merges.as_mut_ptr(), CAPACITY as u32);
            let (name, args) = (launch.kernel.as_ptr(), launch.args.as_ptr());
            let found =
                plan(name, args, block, segments.as_mut_ptr(), at, room, &mut num_merges, &mut shared_sequences);
            segments.set_len(found as usize);
            merges.set_len(num_merges as usize);
        }
        BlockPlan { segments, merges, shared_sequences: shared_sequences != 0 }
    }

    /// The next `times` calls of driver function `name` fail with `code`.
    pub fn fail(&self, name: &CStr, code: c_int, times: c_int) {
        call!(self.driver, "fake_fail", fn(*const c_char, c_int, c_int), name.as_ptr(), code, times);
    }

    pub fn launches(&self) -> Vec<&Launch> {
        let count = call!(self.driver, "fake_num_launches", fn() -> u32,);
        let launch = |i| call!(self.driver, "fake_launch", fn(u32) -> *const Launch, i);
        // SAFETY: the stand-in keeps its records.
        (0..count).map(|i| unsafe { &*launch(i) }).collect()
    }

    /// The one launch there was.
    pub fn launch(&self) -> &Launch {
        let launches = self.launches();
        assert_eq!(launches.len(), 1);
        launches[0]
    }

    pub fn num_launches(&self) -> u32 {
        call!(self.driver, "fake_num_launches", fn() -> u32,)
    }

    pub fn memsets(&self) -> Vec<Memset> {
        let count = call!(self.driver, "fake_num_memsets", fn() -> u32,);
        let memset = |i| call!(self.driver, "fake_memset", fn(u32) -> *const Memset, i);
        // SAFETY: the stand-in keeps its records.
        (0..count).map(|i| unsafe { *memset(i) }).collect()
    }

    pub fn kernels(&self) -> Vec<&Kernel> {
        let count = call!(self.driver, "fake_num_kernels", fn() -> u32,);
        let kernel = |i| call!(self.driver, "fake_kernel", fn(u32) -> *const Kernel, i);
        // SAFETY: the stand-in keeps its records.
        (0..count).map(|i| unsafe { &*kernel(i) }).collect()
    }

    pub fn num_libraries(&self) -> u32 {
        call!(self.driver, "fake_num_libraries", fn() -> u32,)
    }

    pub fn num_pushes(&self) -> u32 {
        call!(self.driver, "fake_num_pushes", fn() -> u32,)
    }

    /// How often the primary context of `device` is retained.
    pub fn retains(&self, device: c_int) -> i32 {
        call!(self.driver, "fake_retains", fn(c_int) -> i32, device)
    }

    /// How many contexts lie on this thread's stack.
    pub fn depth(&self) -> u32 {
        call!(self.driver, "fake_depth", fn() -> u32,)
    }

    pub fn primary(&self, device: c_int) -> *mut c_void {
        call!(self.driver, "fake_primary", fn(c_int) -> *mut c_void, device)
    }

    /// Makes `context` current, as an engine does.
    pub fn push(&self, context: *mut c_void) {
        call!(self.driver, "fake_push", fn(*mut c_void), context);
    }

    /// The options of the last program that NVRTC compiled, and how many it did.
    pub fn nvrtc(&self) -> (String, i32) {
        let library = open(c"libnvrtc.so");
        let options = call!(library, "fake_nvrtc_options", fn() -> *const c_char,);
        // SAFETY: the stand-in keeps its text.
        let options = unsafe { CStr::from_ptr(options) };
        (options.to_string_lossy().into_owned(), call!(library, "fake_nvrtc_num_compiled", fn() -> c_int,))
    }
}

/// Device 0, its pointers not checked.
pub fn cuda() -> Cuda {
    Cuda::open(0, false).unwrap_or_else(|e| panic!("{e}"))
}

/// An address in device `device`'s memory, as the stand-in sees it.
pub fn device_address<T>(device: u64, offset: u64) -> *mut T {
    (0x1000_0000_0000 | device << 40 | offset) as *mut T
}
