//! Where a result goes.

use crate::error::{Error, Result};

/// Refuses a NULL out parameter before any work is done.
pub fn check<T>(name: &str, out: *mut T) -> Result<()> {
    if out.is_null() {
        Err(Error::invalid(format!("{name} is NULL, there is nowhere to put the result")))
    } else {
        Ok(())
    }
}
