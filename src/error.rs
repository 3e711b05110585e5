//! What can go wrong, and the thread-local message that the C caller reads.

use std::cell::UnsafeCell;

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

/// Bytes of a message that are kept, its NUL among them: a few times the longest.
const MESSAGE_BYTES: usize = 1024;

thread_local! {
    /// In the thread's own storage and without a destructor: readable while the thread is being torn down, and a pointer
    /// to it that a caller has kept never dangles while the thread lives.
    static LAST_MESSAGE: UnsafeCell<[u8; MESSAGE_BYTES]> = const { UnsafeCell::new([0; MESSAGE_BYTES]) };
}

/// Keeps `message` for this thread's next `snapmla_last_error_message`; cut where it is longer than any of ours.
pub fn set_last_message(message: &str) {
    let mut end = message.len().min(MESSAGE_BYTES - 1);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    LAST_MESSAGE.with(|slot| {
        // SAFETY: only this thread reaches its slot, and no reference into it leaves this file.
        let slot = unsafe { &mut *slot.get() };
        let text = message.bytes().take(end).filter(|&byte| byte != 0);
        let mut length = 0;
        for (to, from) in slot.iter_mut().zip(text) {
            *to = from;
            length += 1;
        }
        // `end` is less than the slot's length.
        slot[length] = 0;
    });
}

/// This thread's message; valid until the thread's end, and written over by the thread's next failing call.
pub fn last_message() -> *const std::os::raw::c_char {
    LAST_MESSAGE.with(|slot| slot.get().cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn kept(message: &str) -> &'static str {
        set_last_message(message);
        // SAFETY: NUL-terminated, and this thread writes it next after the caller has looked.
        unsafe { CStr::from_ptr(last_message()) }.to_str().unwrap()
    }

    #[test]
    fn a_message_stays_where_it_is() {
        let before = last_message();
        assert_eq!(kept("first, and long"), "first, and long");
        assert_eq!(kept("next"), "next");
        assert_eq!(before, last_message());
        let (here, there) = (before as usize, std::thread::spawn(|| last_message() as usize).join().unwrap());
        assert_ne!(here, there);
    }

    #[test]
    fn a_message_is_cut_between_characters_and_has_no_nul() {
        assert_eq!(kept("a\0b"), "ab");
        let long = "é".repeat(MESSAGE_BYTES);
        assert_eq!(kept(&long), "é".repeat((MESSAGE_BYTES - 1) / 2));
    }
}
