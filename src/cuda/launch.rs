//! One kernel launch on the caller's stream: no allocation, no lock, no synchronisation.

use std::mem;
use std::os::raw::{c_char, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUlaunchAttributeID_enum as AttributeId};

use super::Stream;
use super::device::with_context;
use super::kernel::Kernel;
use crate::error::Result;

/// The first driver that captures programmatic launches into a graph.
const PROGRAMMATIC_CAPTURE: i32 = 12_030;

pub struct Launch<'a, Args> {
    pub kernel: &'a Kernel<Args>,
    pub grid: (u32, u32, u32),
    /// Threads a block.
    pub block: u32,
    /// Bytes of dynamic shared memory, no more than the kernel's line in `kernels.rs` allows.
    pub shared: u32,
    /// Every block resident at once, or none.
    pub cooperative: bool,
    /// The grid may start before the one ahead of it in the stream has ended. Every thread of the kernel must then run
    /// `griddepcontrol.wait` before it touches memory, and before it exits: a grid behind this one counts on it.
    pub pdl: bool,
}

impl<Args: Copy> Launch<'_, Args> {
    pub fn run(&self, stream: Stream, args: &Args) -> Result<()> {
        let driver = self.kernel.driver;
        let mut attributes = [const { unused_attribute() }; 2];
        let mut count = 0;
        if self.cooperative {
            attributes[count].id = AttributeId::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attributes[count].value.cooperative = 1;
            count += 1;
        }
        if self.pdl && driver.version() >= PROGRAMMATIC_CAPTURE {
            attributes[count].id = AttributeId::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        let config = sys::CUlaunchConfig {
            gridDimX: self.grid.0,
            gridDimY: self.grid.1,
            gridDimZ: self.grid.2,
            blockDimX: self.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared,
            hStream: stream.cast(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: count as u32,
        };
        let mut params = [ptr::from_ref(args).cast_mut().cast::<c_void>()];
        // The driver takes a CUkernel here and resolves it in the stream's context.
        let function: sys::CUfunction = self.kernel.handle.cast();
        // SAFETY: the kernel's one parameter is an `Args` by value, which the driver copies before it returns.
        let launch = || unsafe { driver.cuLaunchKernelEx(&config, function, params.as_mut_ptr(), ptr::null_mut()) };
        Ok(with_context(driver, self.kernel.context, launch)?)
    }
}

const fn unused_attribute() -> sys::CUlaunchAttribute {
    let value = sys::CUlaunchAttributeValue { pad: [0; mem::size_of::<sys::CUlaunchAttributeValue>()] };
    sys::CUlaunchAttribute { id: AttributeId::CU_LAUNCH_ATTRIBUTE_IGNORE, pad: [0 as c_char; 4], value }
}
