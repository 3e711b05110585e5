//! The CUDA backend: Hopper (sm_90a), the caller's streams, nothing allocated or synchronised on the launch path.
//!
//! [`driver`] finds the driver's calls, [`device`] holds one device's primary context, [`library`] loads the kernels'
//! code ([`images`], or [`nvrtc`] where the driver wants other code), [`kernels`] lists them, and [`launch`] starts one.
//! Then comes one file for each operation: request in, kernel arguments out.

mod args;
mod clear_pages;
mod decode;
mod device;
mod driver;
mod fetch_dequant;
mod grid;
mod images;
mod k_append;
mod kernel;
mod kernels;
mod launch;
mod library;
mod merge;
mod nvrtc;
mod pointers;
mod q_quant;
mod records_copy;
mod shared_library;

use std::os::raw::c_void;

use self::device::Device;
use self::kernels::Kernels;
use self::library::Libraries;
use crate::error::Result;

/// A `CUstream` of the caller's.
pub type Stream = *mut c_void;

pub struct Cuda {
    device: Device,
    kernels: Box<Kernels>,
    check_pointers: bool,
}

impl Cuda {
    /// Finds the driver and the device, loads the kernels. The error says what is missing.
    pub fn open(ordinal: i32, check_pointers: bool) -> Result<Self> {
        let device = Device::open(ordinal)?;
        let kernels = Box::new(Kernels::bind(Libraries::get(&device)?, &device)?);
        Ok(Self { device, kernels, check_pointers })
    }

    pub fn ordinal(&self) -> i32 {
        self.device.ordinal()
    }

    pub fn device_name(&self) -> &str {
        self.device.name()
    }

    pub fn num_sms(&self) -> u32 {
        self.device.num_sms()
    }
}
