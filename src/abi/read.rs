//! Copies a caller's struct, whichever version of the header the caller has.

use std::mem::MaybeUninit;

use super::released::AbiStruct;
use super::types::SNAPMLA_STATUS_VERSION_MISMATCH;
use crate::error::{Error, Result};

/// No version will have a larger struct: a larger size is an uninitialised field, and reading that far would fault.
const LARGEST_SIZE: usize = 4096;

/// The caller's struct, with the fields that an older caller lacks set to zero.
///
/// # Safety
///
/// `caller` is NULL or points to as many readable bytes as its `struct_size` says (any alignment).
pub unsafe fn read<T: AbiStruct>(name: &str, caller: *const T) -> Result<T> {
    // SAFETY: the caller's promise.
    let size = unsafe { struct_size(name, caller) }?;
    if size > LARGEST_SIZE {
        return Err(Error::invalid(format!(
            "{name}->struct_size {size} is more than {LARGEST_SIZE}: is the struct initialised with its _INIT macro?"
        )));
    }
    let known = size_of::<T>();
    // SAFETY: `size` bytes are readable, so the ones past `known` are too.
    let excess = (known..size).find(|&at| unsafe { caller.cast::<u8>().add(at).read() } != 0);
    if let Some(at) = excess {
        return Err(Error::new(
            SNAPMLA_STATUS_VERSION_MISMATCH,
            format!(
                "{name}->struct_size {size} is more than {known} = sizeof(struct {}) in library version {}, and byte {at} \
                 is set: the caller's header is newer and asks for something that this library lacks",
                T::NAME,
                env!("CARGO_PKG_VERSION"),
            ),
        ));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: both sides have min(size, known) bytes, and `copy` is a local, so they cannot overlap. All bit patterns
    // are values of T (AbiStruct), and the bytes not copied are zeros.
    unsafe {
        std::ptr::copy_nonoverlapping(caller.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), size.min(known));
        Ok(copy.assume_init())
    }
}

/// Writes the fields that the caller's struct has room for, all but its `struct_size`.
///
/// # Safety
///
/// `caller` is NULL or points to as many readable and writable bytes as its `struct_size` says (any alignment).
pub unsafe fn write<T: AbiStruct>(name: &str, caller: *mut T, value: &T) -> Result<()> {
    // SAFETY: the caller's promise.
    let size = unsafe { struct_size(name, caller) }?.min(size_of::<T>());
    let skip = size_of::<u32>();
    // SAFETY: both sides have `size` bytes, more than `skip` by FIRST_SIZE; `value` is the library's own.
    unsafe {
        let from = std::ptr::from_ref(value).cast::<u8>().add(skip);
        std::ptr::copy_nonoverlapping(from, caller.cast::<u8>().add(skip), size - skip);
    }
    Ok(())
}

/// # Safety
///
/// `caller` is NULL or points to at least four readable bytes.
unsafe fn struct_size<T: AbiStruct>(name: &str, caller: *const T) -> Result<usize> {
    if caller.is_null() {
        return Err(Error::invalid(format!("{name} is NULL, not a struct {}", T::NAME)));
    }
    // Through the raw pointer: a reference to T would claim more bytes than the caller may have.
    // SAFETY: the caller's promise; struct_size is the first field.
    let size = unsafe { caller.cast::<u32>().read_unaligned() } as usize;
    if size < T::FIRST_SIZE {
        return Err(Error::invalid(format!(
            "{name}->struct_size {size} is less than {} = sizeof(struct {}) in its first version",
            T::FIRST_SIZE,
            T::NAME
        )));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::super::types::*;
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Grown {
        struct_size: u32,
        first: u32,
        appended: u64,
    }

    // SAFETY: repr(C), begins with struct_size, integers only.
    unsafe impl AbiStruct for Grown {
        const NAME: &'static str = "grown";
        const FIRST_SIZE: usize = 8;
    }

    #[test]
    fn an_older_caller_leaves_appended_fields_zero() {
        let caller = Grown { struct_size: 8, first: 5, appended: u64::MAX };
        // SAFETY: the struct has more bytes than it claims.
        let copy = unsafe { read("params", &caller) }.unwrap();
        assert_eq!((copy.first, copy.appended), (5, 0));
    }

    #[test]
    fn a_newer_caller_is_refused_only_when_it_asks_for_more() {
        let mut bytes = [0u8; 32];
        bytes[..4].copy_from_slice(&32u32.to_ne_bytes());
        let caller = bytes.as_ptr().cast::<Grown>();
        // SAFETY: 32 readable bytes.
        assert!(unsafe { read("params", caller) }.is_ok());
        bytes[31] = 1;
        // SAFETY: as above.
        let error = unsafe { read("params", bytes.as_ptr().cast::<Grown>()) }.err().unwrap();
        assert_eq!(error.status, SNAPMLA_STATUS_VERSION_MISMATCH);
        assert!(error.message.contains("struct_size 32 is more than 16") && error.message.contains("byte 31"));
    }

    #[test]
    fn any_alignment_will_do() {
        let mut bytes = [0u8; 64];
        bytes[3..7].copy_from_slice(&16u32.to_ne_bytes());
        bytes[7..11].copy_from_slice(&9u32.to_ne_bytes());
        // SAFETY: 16 readable bytes from 3 on.
        assert_eq!(unsafe { read("params", bytes.as_ptr().add(3).cast::<Grown>()) }.unwrap().first, 9);
    }

    #[test]
    fn sizes_outside_every_version_are_refused() {
        for (size, text) in [(7, "struct_size 7 is less than 8"), (4097, "struct_size 4097 is more than 4096")] {
            let caller = Grown { struct_size: size, first: 0, appended: 0 };
            // SAFETY: refused before any byte past struct_size is read.
            let error = unsafe { read("params", &caller) }.err().unwrap();
            assert_eq!(error.status, SNAPMLA_STATUS_INVALID_ARGUMENT);
            assert!(error.message.contains(text), "{}", error.message);
        }
    }

    #[test]
    fn writing_stays_inside_the_callers_struct() {
        let value = Grown { struct_size: 16, first: 1, appended: 2 };
        let mut caller = Grown { struct_size: 8, first: 0, appended: 0 };
        // SAFETY: the struct has more bytes than it claims.
        unsafe { write("info", &mut caller, &value) }.unwrap();
        assert_eq!((caller.struct_size, caller.first, caller.appended), (8, 1, 0));
    }
}
