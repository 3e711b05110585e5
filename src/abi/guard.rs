//! The one place where results become statuses, and where a panic stops.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::types::*;
use crate::error::{self, Error, Result};

/// Runs the body of an exported function. A failure's message is kept for the calling thread.
pub fn guard(body: impl FnOnce() -> Result<()>) -> snapmla_status {
    // Unwind safety: what a body shares with later calls is atomics and immutable data, whole after any unwinding.
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return SNAPMLA_STATUS_OK,
        Ok(Err(error)) => error,
        Err(panic) => Error::new(SNAPMLA_STATUS_INTERNAL, format!("internal error: {}", panic_text(&*panic))),
    };
    error::set_last_message(&error.message);
    error.status
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "panic without a message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_with_its_text() {
        for (text, body) in [
            ("internal error: literal", (|| panic!("literal")) as fn() -> Result<()>),
            ("internal error: formatted 7", || panic!("formatted {}", 7)),
            ("internal error: panic without a message", || std::panic::panic_any(7)),
        ] {
            assert_eq!(guard(body), SNAPMLA_STATUS_INTERNAL);
            // SAFETY: the message is a C string, valid until this thread's next failure.
            let message = unsafe { std::ffi::CStr::from_ptr(error::last_message()) };
            assert_eq!(message.to_str(), Ok(text));
        }
    }

    #[test]
    fn success_keeps_the_last_message() {
        assert_eq!(guard(|| Err(Error::invalid("kept"))), SNAPMLA_STATUS_INVALID_ARGUMENT);
        assert_eq!(guard(|| Ok(())), SNAPMLA_STATUS_OK);
        // SAFETY: as above.
        assert_eq!(unsafe { std::ffi::CStr::from_ptr(error::last_message()) }.to_str(), Ok("kept"));
    }
}
