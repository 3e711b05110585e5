//! What the driver knows of a caller's pointer.

use std::os::raw::c_int;

use cudarc::driver::sys::{CUmemorytype_enum as MemoryType, CUpointer_attribute_enum as Attribute, CUresult};

use super::Cuda;
use crate::error::{Error, Result};

impl Cuda {
    /// Refuses memory that the device cannot reach.
    pub fn check_device_pointer(&self, name: &str, ptr: *const u8) -> Result<()> {
        let ordinal = self.ordinal();
        let Some(memory_type) = self.pointer_attribute(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr)? else {
            if self.device.shares_host_page_tables()? {
                return Ok(());
            }
            return Err(Error::invalid(format!(
                "{name} is {ptr:p}, which is not CUDA memory, and device {ordinal} cannot reach it"
            )));
        };
        // Pinned and managed memory is reachable from every device.
        if memory_type != MemoryType::CU_MEMORYTYPE_DEVICE as c_int
            || self.pointer_attribute(Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr)? == Some(1)
        {
            return Ok(());
        }
        let owner = self.pointer_attribute(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr)?;
        if owner.is_some_and(|owner| owner != ordinal) {
            let owner = owner.unwrap_or_default();
            return Err(Error::invalid(format!(
                "{name} is {ptr:p}, memory of device {owner}, and the context is device {ordinal}'s"
            )));
        }
        Ok(())
    }

    /// The checks of a context that was opened with `check_pointers`; NULL stands for a tensor that is left out.
    pub(super) fn check_pointers(&self, pointers: &[(&str, *const u8)]) -> Result<()> {
        if !self.check_pointers {
            return Ok(());
        }
        pointers.iter().filter(|(_, p)| !p.is_null()).try_for_each(|&(name, p)| self.check_device_pointer(name, p))
    }

    /// None for memory that CUDA has never heard of. Every attribute asked for fits four bytes.
    fn pointer_attribute(&self, which: Attribute, ptr: *const u8) -> Result<Option<c_int>> {
        let mut value: c_int = 0;
        // SAFETY: the attributes asked for are integers; `ptr` is only looked up.
        let result = unsafe {
            let place = (&raw mut value).cast();
            self.device.driver().cuPointerGetAttribute(place, which as u32, ptr as u64)
        };
        match result {
            Ok(()) => Ok(Some(value)),
            Err(e) if e.code == CUresult::CUDA_ERROR_INVALID_VALUE as c_int => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}
