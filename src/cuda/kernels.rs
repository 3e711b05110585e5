//! Every kernel of the library, one line each.

use super::args::*;
use super::device::Device;
use super::driver::CudaResult;
use super::kernel::Kernel;
use super::library::Libraries;

macro_rules! kernels {
    ($($field:ident: $args:ty = $module:literal / $symbol:literal, $shared:expr;)*) => {
        /// The kernels, loaded on one device.
        pub struct Kernels {
            $(pub $field: Kernel<$args>,)*
        }

        impl Kernels {
            pub fn bind(libraries: &Libraries, device: &Device) -> CudaResult<Self> {
                Ok(Self { $($field: Kernel::bind(libraries, device, $module, $symbol, $shared)?,)* })
            }
        }
    };
}

// field: argument struct = file in cuda/ without .cu / name of the kernel, most bytes of dynamic shared memory
kernels! {
    k_append_bf16: KAppendArgs = "k_append" / "snapmla_k_append_bf16", 0;
    k_append_f16: KAppendArgs = "k_append" / "snapmla_k_append_f16", 0;
    k_append_f32: KAppendArgs = "k_append" / "snapmla_k_append_f32", 0;
}
