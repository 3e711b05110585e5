//! Where the rows of callers' strided tensors lie.

use crate::request::HeadRows;

/// A raw pointer, moved by bytes.
pub trait Pointer: Copy {
    fn byte_offset(self, bytes: i64) -> Self;
}

impl<T> Pointer for *const T {
    fn byte_offset(self, bytes: i64) -> Self {
        self.wrapping_byte_offset(bytes as isize)
    }
}

impl<T> Pointer for *mut T {
    fn byte_offset(self, bytes: i64) -> Self {
        self.wrapping_byte_offset(bytes as isize)
    }
}

/// Rows found by a token and a head.
pub trait ByHead<P> {
    fn at(&self, token: i64, head: i64) -> P;
}

impl<P: Pointer> ByHead<P> for HeadRows<P> {
    fn at(&self, token: i64, head: i64) -> P {
        self.ptr.byte_offset(token * self.token_stride + head * self.head_stride)
    }
}
