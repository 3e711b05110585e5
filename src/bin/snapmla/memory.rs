//! Typed buffers in the memory of the backend in use: host memory for the CPU, device memory for CUDA.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::raw::c_void;
use std::rc::Rc;
use std::time::Instant;

use half::{bf16, f16};
use snapmla::abi::types::*;

use crate::cuda::{Allocation, Gpu};
use crate::failure::{Failure, Result};

/// The strictest alignment that the library asks for.
const ALIGNMENT: usize = 256;

/// Plain numbers: any bytes are a value, and every byte of a value is data.
///
/// # Safety
/// The type has no padding and no invalid bit pattern.
pub unsafe trait Plain: Copy {}

/// A floating-point type that the library takes.
pub trait Element: Plain {
    const DTYPE: snapmla_dtype;
    fn of(value: f32) -> Self;
}

macro_rules! element {
    ($type:ty, $dtype:expr, $from:expr) => {
        // SAFETY: a plain number.
        unsafe impl Plain for $type {}
        impl Element for $type {
            const DTYPE: snapmla_dtype = $dtype;
            fn of(value: f32) -> Self {
                $from(value)
            }
        }
    };
}

element!(bf16, SNAPMLA_DTYPE_BF16, bf16::from_f32);
element!(f16, SNAPMLA_DTYPE_F16, f16::from_f32);
element!(f32, SNAPMLA_DTYPE_F32, |x| x);

// SAFETY: plain numbers.
unsafe impl Plain for u8 {}
unsafe impl Plain for i32 {}
unsafe impl Plain for i64 {}

/// Which memory.
#[derive(Clone)]
pub enum Place {
    Host,
    Gpu(Rc<Gpu>),
}

impl Place {
    /// Zeros on the host, whatever was there on a GPU.
    pub fn buffer<T: Plain>(&self, len: usize) -> Result<Buffer<T>> {
        let bytes = len * size_of::<T>();
        let memory = match self {
            Place::Host => Memory::Host(HostBlock::new(bytes)?),
            Place::Gpu(gpu) => Memory::Gpu(gpu.allocate(bytes)?),
        };
        Ok(Buffer { memory, len, element: PhantomData })
    }

    pub fn upload<T: Plain>(&self, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.buffer(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }

    /// The stream argument of the library's functions.
    pub fn stream(&self) -> *mut c_void {
        match self {
            Place::Host => std::ptr::null_mut(),
            Place::Gpu(gpu) => gpu.stream(),
        }
    }

    pub fn synchronize(&self) -> Result<()> {
        match self {
            Place::Host => Ok(()),
            Place::Gpu(gpu) => gpu.synchronize(),
        }
    }
}

impl Place {
    /// Seconds that `work` takes: by events on the stream, or by the host's clock.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        match self {
            Place::Host => {
                let start = Instant::now();
                work()?;
                Ok(start.elapsed().as_secs_f64())
            }
            Place::Gpu(gpu) => {
                let (start, end) = (gpu.event()?, gpu.event()?);
                start.record()?;
                work()?;
                end.record()?;
                end.seconds_since(&start)
            }
        }
    }
}

struct HostBlock {
    pointer: *mut u8,
    layout: Layout,
}

impl HostBlock {
    fn new(bytes: usize) -> Result<Self> {
        let too_large = || Failure::new(format!("{bytes} bytes of host memory are not to be had"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| too_large())?;
        // SAFETY: the size is not 0.
        let pointer = unsafe { alloc_zeroed(layout) };
        if pointer.is_null() { Err(too_large()) } else { Ok(Self { pointer, layout }) }
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.pointer, self.layout) }
    }
}

enum Memory {
    Host(HostBlock),
    Gpu(Allocation),
}

pub struct Buffer<T> {
    memory: Memory,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn pointer(&self) -> *mut T {
        match &self.memory {
            Memory::Host(block) => block.pointer.cast(),
            Memory::Gpu(allocation) => allocation.pointer().cast(),
        }
    }

    pub fn slice(&self, range: Range<usize>) -> Slice<'_, T> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a buffer of {}", self.len);
        Slice { buffer: self, start: range.start, len: range.end - range.start }
    }

    pub fn all(&self) -> Slice<'_, T> {
        self.slice(0..self.len)
    }

    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        let range = self.slice(at..at + values.len());
        let bytes = size_of_val(values);
        // SAFETY: plain numbers, read as bytes.
        let source = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), bytes) };
        match &self.memory {
            // SAFETY: the range was checked, and `&mut self` shuts out every other use.
            Memory::Host(_) => unsafe { range.pointer().cast::<u8>().copy_from(source.as_ptr(), bytes) },
            Memory::Gpu(allocation) => allocation.write(at * size_of::<T>(), source)?,
        }
        Ok(())
    }

    pub fn read(&self, range: Range<usize>) -> Result<Vec<T>> {
        let slice = self.slice(range.clone());
        let bytes = slice.len * size_of::<T>();
        let mut values: Vec<T> = Vec::with_capacity(slice.len);
        match &self.memory {
            // SAFETY: the range was checked; the vector has room for it.
            Memory::Host(_) => unsafe { values.as_mut_ptr().copy_from(slice.pointer(), slice.len) },
            Memory::Gpu(allocation) => {
                // SAFETY: the vector has this many bytes, and the driver fills them all.
                let target = unsafe {
                    values.as_mut_ptr().cast::<u8>().write_bytes(0, bytes);
                    std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), bytes)
                };
                allocation.read(range.start * size_of::<T>(), target)?;
            }
        }
        // SAFETY: every element was just written.
        unsafe { values.set_len(slice.len) };
        Ok(values)
    }
}

/// Part of a buffer, its bounds checked.
#[derive(Clone, Copy)]
pub struct Slice<'a, T> {
    buffer: &'a Buffer<T>,
    start: usize,
    pub len: usize,
}

impl<T: Plain> Slice<'_, T> {
    /// Copies to a slice as long of another buffer in the same memory.
    pub fn copy_to(&self, to: &Slice<'_, T>) -> Result<()> {
        assert_eq!(self.len, to.len);
        assert!(!std::ptr::eq(self.buffer, to.buffer), "a buffer copied to itself");
        match (&to.buffer.memory, &self.buffer.memory) {
            (Memory::Gpu(target), Memory::Gpu(source)) => {
                let at = |slice: &Slice<'_, T>| slice.start * size_of::<T>();
                target.copy(at(to), source, at(self), self.len * size_of::<T>())
            }
            // SAFETY: host memory within both buffers, whose memory does not overlap.
            _ => unsafe {
                to.pointer().copy_from_nonoverlapping(self.pointer(), self.len);
                Ok(())
            },
        }
    }

    pub fn pointer(&self) -> *mut T {
        self.buffer.pointer().wrapping_add(self.start)
    }
}

impl<'a, T: Element> From<Slice<'a, T>> for Floats<'a> {
    fn from(slice: Slice<'a, T>) -> Self {
        Self { pointer: slice.pointer().cast(), len: slice.len, dtype: T::DTYPE, lifetime: PhantomData }
    }
}

/// Floating-point numbers of any element type.
#[derive(Clone, Copy)]
pub struct Floats<'a> {
    pub pointer: *mut c_void,
    pub len: usize,
    pub dtype: snapmla_dtype,
    lifetime: PhantomData<&'a ()>,
}
