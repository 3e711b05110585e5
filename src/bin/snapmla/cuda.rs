//! The little of the CUDA driver that a caller of the library needs: memory, one stream, events, graphs.

use std::ffi::CStr;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::*;

use crate::failure::{Failure, Result};

fn check(what: &str, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = ptr::null();
    // SAFETY: `name` receives a static string, or NULL for a code that the driver does not know.
    let name = unsafe {
        match cuGetErrorName(code, &mut name) {
            CUresult::CUDA_SUCCESS if !name.is_null() => CStr::from_ptr(name).to_string_lossy().into_owned(),
            _ => format!("error {}", code as u32),
        }
    };
    Err(Failure::new(format!("{what}: {name}")))
}

/// `call!(cuFn(args))`: the call, its name in the error.
macro_rules! call {
    ($function:ident($($argument:expr),*)) => {
        // SAFETY: every handle comes from the driver and lives as long as its owner here.
        check(stringify!($function), unsafe { $function($($argument),*) })
    };
}

/// CUDA 12.8: `cuEventElapsedTime_v2`.
const OLDEST_DRIVER: i32 = 12080;

fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// A device's primary context, current on this thread, and one stream in it.
pub struct Gpu {
    device: CUdevice,
    stream: CUstream,
    version: i32,
}

impl Gpu {
    pub fn open(ordinal: i32) -> Result<Rc<Self>> {
        // SAFETY: it only looks for the library.
        if !unsafe { is_culib_present() } {
            return Err(Failure::new("libcuda is not there"));
        }
        let mut device = 0;
        let mut context = ptr::null_mut();
        let mut stream = ptr::null_mut();
        call!(cuInit(0))?;
        let mut version = 0;
        call!(cuDriverGetVersion(&mut version))?;
        if version < OLDEST_DRIVER {
            // Its libcuda lacks symbols that are used below, and a missing symbol panics.
            let (found, wanted) = (version_text(version), version_text(OLDEST_DRIVER));
            return Err(Failure::new(format!("the driver is made for CUDA {found}; this program needs {wanted}")));
        }
        call!(cuDeviceGet(&mut device, ordinal))?;
        call!(cuDevicePrimaryCtxRetain(&mut context, device))?;
        call!(cuCtxSetCurrent(context))?;
        call!(cuStreamCreate(&mut stream, CUstream_flags::CU_STREAM_NON_BLOCKING as u32))?;
        Ok(Rc::new(Self { device, stream, version }))
    }

    pub fn stream(&self) -> *mut c_void {
        self.stream.cast()
    }

    pub fn synchronize(&self) -> Result<()> {
        call!(cuStreamSynchronize(self.stream))
    }

    /// The newest CUDA that the driver is made for.
    pub fn driver_version(&self) -> String {
        version_text(self.version)
    }

    pub fn allocate(self: &Rc<Self>, bytes: usize) -> Result<Allocation> {
        let mut pointer = 0;
        call!(cuMemAlloc_v2(&mut pointer, bytes.max(1)))
            .map_err(|error| Failure::new(format!("{bytes} bytes of device memory: {error}")))?;
        Ok(Allocation { gpu: self.clone(), pointer })
    }

    pub fn event(self: &Rc<Self>) -> Result<Event> {
        let mut event = ptr::null_mut();
        call!(cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DEFAULT as u32))?;
        Ok(Event { gpu: self.clone(), event })
    }

    /// What `launches` puts on the stream, as a graph that can be replayed.
    pub fn capture(self: &Rc<Self>, launches: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call!(cuStreamBeginCapture_v2(self.stream, mode))?;
        let launched = launches();
        let mut graph = ptr::null_mut();
        let ended = call!(cuStreamEndCapture(self.stream, &mut graph));
        launched.and(ended)?;
        let mut exec = ptr::null_mut();
        let made = call!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        call!(cuGraphDestroy(graph))?;
        made?;
        Ok(Graph { gpu: self.clone(), exec })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let _ = call!(cuStreamDestroy_v2(self.stream));
        let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
    }
}

pub struct Allocation {
    gpu: Rc<Gpu>,
    pointer: CUdeviceptr,
}

impl Allocation {
    pub fn pointer(&self) -> *mut u8 {
        self.pointer as usize as *mut u8
    }

    /// In stream order. The caller has checked the bounds.
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let to = self.pointer + at as u64;
        call!(cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), self.gpu.stream))
    }

    /// In stream order; waits for the data. The caller has checked the bounds.
    pub fn read(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        let from = self.pointer + at as u64;
        call!(cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), from, bytes.len(), self.gpu.stream))?;
        self.gpu.synchronize()
    }

    /// Copies `bytes` from there in `from` to here. The caller has checked the bounds.
    pub fn copy(&self, here: usize, from: &Self, there: usize, bytes: usize) -> Result<()> {
        let (to, source) = (self.pointer + here as u64, from.pointer + there as u64);
        call!(cuMemcpyDtoDAsync_v2(to, source, bytes, self.gpu.stream))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let _ = self.gpu.synchronize();
        let _ = call!(cuMemFree_v2(self.pointer));
    }
}

/// A point on the stream's time line.
pub struct Event {
    gpu: Rc<Gpu>,
    event: CUevent,
}

impl Event {
    pub fn record(&self) -> Result<()> {
        call!(cuEventRecord(self.event, self.gpu.stream))
    }

    /// Seconds from `start` to here; waits for both.
    pub fn seconds_since(&self, start: &Self) -> Result<f64> {
        let mut milliseconds = 0.0;
        call!(cuEventSynchronize(self.event))?;
        call!(cuEventElapsedTime_v2(&mut milliseconds, start.event, self.event))?;
        Ok(milliseconds as f64 * 1e-3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = call!(cuEventDestroy_v2(self.event));
    }
}

pub struct Graph {
    gpu: Rc<Gpu>,
    exec: CUgraphExec,
}

impl Graph {
    pub fn launch(&self) -> Result<()> {
        call!(cuGraphLaunch(self.exec, self.gpu.stream))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.gpu.synchronize();
        let _ = call!(cuGraphExecDestroy(self.exec));
    }
}
