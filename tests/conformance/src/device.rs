//! The CUDA device as this suite uses it: a context, streams, graphs, and never a wait without an end.

use std::ffi::{CStr, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use crate::memory::Result;

/// A launch that takes longer has deadlocked: the longest case is a second of work.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub fn check(call: &str, result: sys::CUresult) -> Result<()> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = std::ptr::null();
    // SAFETY: an out pointer to a static string.
    unsafe { sys::cuGetErrorName(result, &mut name) };
    let name = if name.is_null() {
        "unknown".into()
    } else {
        // SAFETY: NUL-terminated, static.
        unsafe { CStr::from_ptr(name) }.to_string_lossy()
    };
    Err(format!("{call}: {name}"))
}

/// A device's primary context.
pub struct Cuda {
    context: sys::CUcontext,
    pub card: String,
    pub driver: String,
    /// Set when a launch never ended or died: whatever comes next would share its fate.
    lost: AtomicBool,
}

// SAFETY: the driver's contexts may be used from any thread.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

impl Cuda {
    pub fn open(ordinal: i32) -> Result<Arc<Self>> {
        // SAFETY: looks for the library, runs nothing of ours.
        if !unsafe { sys::is_culib_present() } {
            return Err("no CUDA driver library".into());
        }
        // SAFETY: out pointers, in the order that the driver API asks for.
        unsafe {
            check("cuInit", sys::cuInit(0))?;
            let (mut device, mut context, mut version) = (0, std::ptr::null_mut(), 0);
            let mut name = [0; 256];
            check("cuDeviceGet", sys::cuDeviceGet(&mut device, ordinal))?;
            check("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device))?;
            check("cuDriverGetVersion", sys::cuDriverGetVersion(&mut version))?;
            check("cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
            let card = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
            let driver = driver_version().unwrap_or_else(|| "unknown".into());
            let driver = format!("{driver}, CUDA {}.{}", version / 1000, version % 1000 / 10);
            Ok(Arc::new(Self { context, card, driver, lost: AtomicBool::new(false) }))
        }
    }

    /// Makes the context this thread's.
    pub fn enter(&self) -> Result<()> {
        if self.lost.load(Ordering::Relaxed) {
            return Err("the device was lost in an earlier case".into());
        }
        // SAFETY: a live context.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// Waits for the default stream's copies and fills, so that other streams may use what they wrote.
    pub fn finish(&self) -> Result<()> {
        // SAFETY: the default stream.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) })
    }

    pub fn stream(self: &Arc<Self>) -> Result<Stream> {
        self.enter()?;
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: an out pointer.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut raw, flags) })?;
        Ok(Stream(Some(Queue { cuda: self.clone(), raw })))
    }
}

/// The kernel module's version, which the driver API does not tell.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let mut words = text.split_whitespace();
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).map(str::to_string)
}

struct Queue {
    cuda: Arc<Cuda>,
    raw: sys::CUstream,
}

/// What a call is given as its stream: nothing on the host, a non-blocking stream on CUDA.
pub struct Stream(Option<Queue>);

// SAFETY: a driver handle, usable from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub fn host() -> Self {
        Self(None)
    }

    pub fn raw(&self) -> *mut c_void {
        self.0.as_ref().map_or(std::ptr::null_mut(), |queue| queue.raw.cast())
    }

    /// Makes the context current for calls on this stream.
    pub fn enter(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |queue| queue.cuda.enter())
    }

    /// Waits until everything on the stream is done, or says that it never ended.
    pub fn wait(&self) -> Result<()> {
        let Some(queue) = &self.0 else { return Ok(()) };
        queue.cuda.enter()?;
        let start = Instant::now();
        loop {
            // SAFETY: a live stream.
            match unsafe { sys::cuStreamQuery(queue.raw) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                sys::CUresult::CUDA_SUCCESS => return Ok(()),
                // A fault in a kernel takes the whole context with it.
                fault => {
                    queue.cuda.lost.store(true, Ordering::Relaxed);
                    return check("the stream", fault);
                }
            }
            if start.elapsed() > LONGEST_WAIT {
                queue.cuda.lost.store(true, Ordering::Relaxed);
                return Err(format!("a launch has not ended after {LONGEST_WAIT:?}: deadlock"));
            }
            if start.elapsed() > Duration::from_millis(5) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    /// What `work` puts on the stream, as a graph to replay. Fails on the host, which has no graphs.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph<'_>> {
        let queue = self.0.as_ref().ok_or("the host has no graphs")?;
        queue.cuda.enter()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let (mut graph, mut ready) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live stream, out pointers; the graph is destroyed once instantiated.
        unsafe {
            check("cuStreamBeginCapture", sys::cuStreamBeginCapture_v2(queue.raw, mode))?;
            let worked = work();
            let ended = check("cuStreamEndCapture", sys::cuStreamEndCapture(queue.raw, &mut graph));
            worked?;
            ended?;
            let made = check("cuGraphInstantiate", sys::cuGraphInstantiateWithFlags(&mut ready, graph, 0));
            sys::cuGraphDestroy(graph);
            made?;
        }
        Ok(Graph { stream: self, raw: ready })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(queue) = &self.0
            && queue.cuda.enter().is_ok()
        {
            // SAFETY: made by `Cuda::stream`.
            unsafe { sys::cuStreamDestroy_v2(queue.raw) };
        }
    }
}

/// A captured graph, ready to run on the stream it came from.
pub struct Graph<'a> {
    stream: &'a Stream,
    raw: sys::CUgraphExec,
}

impl Graph<'_> {
    pub fn replay(&self) -> Result<()> {
        self.stream.enter()?;
        // SAFETY: a live graph and its stream.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.raw, self.stream.raw().cast()) })
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `capture`.
        unsafe { sys::cuGraphExecDestroy(self.raw) };
    }
}
