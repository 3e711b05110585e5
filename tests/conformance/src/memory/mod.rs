//! Memory where a backend can reach it, one small trait.

pub mod cuda;
pub mod host;

use std::sync::Arc;

pub type Result<T> = std::result::Result<T, String>;

/// Raw memory of one kind. Every function is synchronous.
pub trait Memory: Send + Sync {
    /// `bytes` of memory whose address is a multiple of `align` (at most 256). Contents are zeros on the host and
    /// anything on a device.
    fn alloc(&self, bytes: usize, align: usize) -> Result<*mut u8>;

    /// # Safety
    /// `ptr` and `bytes` come from one `alloc`.
    unsafe fn free(&self, ptr: *mut u8, bytes: usize);

    /// # Safety
    /// `from.len()` bytes from `to` lie within one allocation.
    unsafe fn upload(&self, to: *mut u8, from: &[u8]) -> Result<()>;

    /// # Safety
    /// `to.len()` bytes from `from` lie within one allocation.
    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()>;

    /// # Safety
    /// `bytes` bytes from `at` lie within one allocation.
    unsafe fn fill(&self, at: *mut u8, bytes: usize, value: u8) -> Result<()>;
}

/// One allocation, freed when dropped.
pub struct Buffer {
    memory: Arc<dyn Memory>,
    ptr: *mut u8,
    len: usize,
}

// SAFETY: an address; whoever touches the memory synchronises.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` bytes that lie as near to the allocation's end as an alignment of 16 allows.
    pub fn new(memory: &Arc<dyn Memory>, len: usize) -> Result<Self> {
        Self::aligned(memory, len, 16)
    }

    pub fn aligned(memory: &Arc<dyn Memory>, len: usize, align: usize) -> Result<Self> {
        let ptr = memory.alloc(len, align)?;
        Ok(Self { memory: memory.clone(), ptr, len })
    }

    pub fn holding(memory: &Arc<dyn Memory>, bytes: &[u8]) -> Result<Self> {
        let buffer = Self::new(memory, bytes.len())?;
        buffer.upload(0, bytes)?;
        Ok(buffer)
    }

    pub fn filled(memory: &Arc<dyn Memory>, len: usize, value: u8) -> Result<Self> {
        let buffer = Self::new(memory, len)?;
        buffer.fill(value)?;
        Ok(buffer)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of byte `offset`.
    pub fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset <= self.len);
        self.ptr.wrapping_add(offset).cast()
    }

    pub fn upload(&self, offset: usize, from: &[u8]) -> Result<()> {
        assert!(offset + from.len() <= self.len);
        // SAFETY: within the allocation.
        unsafe { self.memory.upload(self.ptr.add(offset), from) }
    }

    pub fn download_into(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        assert!(offset + to.len() <= self.len);
        // SAFETY: within the allocation.
        unsafe { self.memory.download(self.ptr.add(offset), to) }
    }

    pub fn download(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        self.download_into(0, &mut bytes)?;
        Ok(bytes)
    }

    pub fn fill(&self, value: u8) -> Result<()> {
        self.fill_range(0, self.len, value)
    }

    pub fn fill_range(&self, offset: usize, bytes: usize, value: u8) -> Result<()> {
        assert!(offset + bytes <= self.len);
        // SAFETY: within the allocation.
        unsafe { self.memory.fill(self.ptr.add(offset), bytes, value) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: from `alloc`, once.
        unsafe { self.memory.free(self.ptr, self.len) }
    }
}

/// The bytes of a slice of plain numbers.
pub fn bytes_of<T: Plain>(items: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no padding.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// Numbers without padding bytes.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for i32 {}
impl Plain for i64 {}
impl Plain for f32 {}
