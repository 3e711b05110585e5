//! What can go wrong, and the thread-local message that the C caller reads.

use std::cell::RefCell;
use std::ffi::{CStr, CString};

use crate::abi::types::*;

/// A status of the ABI with the message that explains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub status: snapmla_status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(status: snapmla_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(SNAPMLA_STATUS_INVALID_ARGUMENT, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(SNAPMLA_STATUS_UNSUPPORTED, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(SNAPMLA_STATUS_UNAVAILABLE, message)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

thread_local! {
    static LAST_MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps `message` for this thread's next `snapmla_last_error_message`.
pub fn set_last_message(message: &str) {
    let text: Vec<u8> = message.bytes().filter(|&b| b != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // A thread that is being torn down has lost its message; there is nobody left to read it.
    let _ = LAST_MESSAGE.try_with(|slot| *slot.borrow_mut() = text);
}

/// This thread's message; valid until the thread's next failing call.
pub fn last_message() -> *const std::os::raw::c_char {
    LAST_MESSAGE.try_with(|slot| slot.borrow().as_ptr()).unwrap_or_else(|_| CStr::as_ptr(c""))
}
