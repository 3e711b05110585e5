//! Host memory between pages that must not be touched: an access past either end stops the process.

use super::{Memory, Result};

const PAGE: usize = 4096;

pub struct Host;

/// Bytes mapped for `bytes` of payload, without the two guard pages. At least one page: an empty tensor has an address.
fn mapped(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(PAGE)
}

impl Memory for Host {
    fn alloc(&self, bytes: usize, align: usize) -> Result<*mut u8> {
        let body = mapped(bytes);
        // SAFETY: a fresh anonymous mapping, whose body then becomes accessible. It costs nothing until touched.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let base = libc::mmap(std::ptr::null_mut(), body + 2 * PAGE, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(format!("mmap of {bytes} bytes: {}", std::io::Error::last_os_error()));
            }
            let body_at = base.cast::<u8>().add(PAGE);
            if libc::mprotect(body_at.cast(), body, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return Err(format!("mprotect of {bytes} bytes: {}", std::io::Error::last_os_error()));
            }
            // The last byte of payload as near to the guard as the alignment allows.
            Ok(body_at.add((body - bytes.max(1)) / align * align))
        }
    }

    unsafe fn free(&self, ptr: *mut u8, bytes: usize) {
        let base = (ptr as usize / PAGE * PAGE - PAGE) as *mut libc::c_void;
        // SAFETY: `alloc` placed the payload in the body's first page, which a guard page precedes.
        unsafe { libc::munmap(base, mapped(bytes) + 2 * PAGE) };
    }

    unsafe fn upload(&self, to: *mut u8, from: &[u8]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from, to.len()) };
        Ok(())
    }

    unsafe fn fill(&self, at: *mut u8, bytes: usize, value: u8) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { at.write_bytes(value, bytes) };
        Ok(())
    }
}

/// Host memory that costs nothing until touched, for copies of caches with far pages. All zeros at first.
pub struct Sparse {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Sparse {}
// SAFETY: as above; `Deref` gives shared reads only.
unsafe impl Sync for Sparse {}

impl Sparse {
    pub fn new(len: usize) -> Result<Self> {
        Ok(Self { ptr: Host.alloc(len, 16)?, len })
    }
}

impl std::ops::Deref for Sparse {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: this mapping.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl std::ops::DerefMut for Sparse {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: this mapping, borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // SAFETY: from `alloc`, once.
        unsafe { Host.free(self.ptr, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_and_end_at_the_guard() {
        for bytes in [0, 1, 2, 15, 16, 4095, 4096, 4098, 100_000] {
            for align in [16, 256] {
                let ptr = Host.alloc(bytes, align).unwrap();
                assert_eq!(ptr as usize % align, 0);
                let slack = (ptr as usize + bytes).next_multiple_of(PAGE) - (ptr as usize + bytes);
                assert!(bytes == 0 || slack < align, "{bytes} {align}: {slack}");
                // SAFETY: as allocated.
                unsafe {
                    ptr.write_bytes(1, bytes);
                    Host.free(ptr, bytes);
                }
            }
        }
    }
}
