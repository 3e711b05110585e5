//! The kernels' machine code: the cubins that the build embedded, or what NVRTC makes of the embedded sources.

use std::borrow::Cow;

use super::nvrtc;
use crate::error::Result;

/// The driver reads a cubin as the ELF file it is.
#[repr(C, align(64))]
pub struct Aligned<T: ?Sized>(T);

mod embedded {
    use super::Aligned;
    include!(concat!(env!("OUT_DIR"), "/embedded_kernels.rs"));
}

/// One `.cu` file's code.
pub struct Image {
    pub module: &'static str,
    pub code: Cow<'static, [u8]>,
}

/// What the build embedded; empty when it had no nvcc.
pub fn compiled_at_build() -> Vec<Image> {
    embedded::CUBINS.iter().map(|(module, cubin)| Image { module, code: Cow::Borrowed(&cubin.0) }).collect()
}

/// What this machine's NVRTC makes of the sources. Takes seconds.
pub fn compiled_now() -> Result<Vec<Image>> {
    nvrtc::compile(embedded::SOURCES)
}
