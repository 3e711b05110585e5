//! Opaque handles that can be told from destroyed ones.
//!
//! A handle points to a small cell that is never returned to the allocator (32 bytes a handle ever made), so that
//! looking at it after destroy is defined. What it guards is freed by destroy, or by the last call that was
//! inside it at that moment. Entering and leaving are one atomic operation each: no lock, no allocation.

use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::types::SNAPMLA_STATUS_INVALID_HANDLE;
use crate::error::{Error, Result};

/// Set in `Cell::state` by destroy; the other bits count the calls inside.
const CLOSED: u64 = 1 << 63;

#[repr(C)]
pub struct Cell<T> {
    /// First in every cell, so that a handle of another kind is told before its cell is read as one of this kind.
    magic: u64,
    state: AtomicU64,
    guarded: AtomicPtr<T>,
    /// Keeps every cell reachable, for leak checkers.
    next: AtomicPtr<Cell<T>>,
}

/// What lives behind a handle.
pub trait Guarded: Send + Sync + Sized + 'static {
    /// The C type that pointers to the cell are cast to.
    type Opaque;
    /// The parameter's name in messages.
    const NAME: &'static str;
    /// A number that no other kind of handle has.
    const MAGIC: u64;
    /// Where the list of this kind's cells starts.
    fn cells() -> &'static AtomicPtr<Cell<Self>>;
}

/// A call's stay inside a handle: what it guards lives at least as long.
pub struct Entered<T: Guarded> {
    cell: &'static Cell<T>,
}

/// Makes a handle.
pub fn open<T: Guarded>(guarded: T) -> *mut T::Opaque {
    let cell: &'static Cell<T> = Box::leak(Box::new(Cell {
        magic: T::MAGIC,
        state: AtomicU64::new(0),
        guarded: AtomicPtr::new(Box::into_raw(Box::new(guarded))),
        next: AtomicPtr::new(null_mut()),
    }));
    let address = std::ptr::from_ref(cell).cast_mut();
    let link = |head| {
        cell.next.store(head, Ordering::Relaxed);
        Some(address)
    };
    // Always Ok: `link` never gives None.
    let _ = T::cells().fetch_update(Ordering::Release, Ordering::Relaxed, link);
    address.cast()
}

/// Enters a handle for the length of a call.
///
/// # Safety
///
/// `handle` is NULL or points to readable memory; for anything but a handle, live or destroyed, of this library
/// only the first eight bytes are looked at.
pub unsafe fn enter<T: Guarded>(handle: *const T::Opaque) -> Result<Entered<T>> {
    // SAFETY: the caller's promise.
    let cell = unsafe { cell::<T>(handle) }?;
    cell.state
        .fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| (state & CLOSED == 0).then_some(state + 1))
        .map_err(|_| destroyed::<T>(handle))?;
    Ok(Entered { cell })
}

/// Destroys a handle; calls inside it finish undisturbed. NULL is fine.
///
/// # Safety
///
/// As for `enter`.
pub unsafe fn close<T: Guarded>(handle: *mut T::Opaque) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let cell = unsafe { cell::<T>(handle) }?;
    let before = cell.state.fetch_or(CLOSED, Ordering::AcqRel);
    if before & CLOSED != 0 {
        return Err(destroyed::<T>(handle));
    }
    if before == 0 {
        cell.free();
    }
    Ok(())
}

/// # Safety
///
/// As for `enter`.
unsafe fn cell<T: Guarded>(handle: *const T::Opaque) -> Result<&'static Cell<T>> {
    let refuse = |why: &str| Err(Error::new(SNAPMLA_STATUS_INVALID_HANDLE, format!("{} {handle:p} {why}", T::NAME)));
    if handle.is_null() {
        return Err(Error::new(SNAPMLA_STATUS_INVALID_HANDLE, format!("{} is NULL", T::NAME)));
    }
    let cell = handle.cast::<Cell<T>>();
    // SAFETY: not NULL and aligned; readable by the caller's promise.
    if !cell.is_aligned() || unsafe { cell.cast::<u64>().read() } != T::MAGIC {
        return refuse("is not a handle of this kind");
    }
    // SAFETY: the magic number says that `open` made it, and cells are never freed.
    Ok(unsafe { &*cell })
}

fn destroyed<T: Guarded>(handle: *const T::Opaque) -> Error {
    Error::new(SNAPMLA_STATUS_INVALID_HANDLE, format!("{} {handle:p} has been destroyed", T::NAME))
}

impl<T: Guarded> Cell<T> {
    /// Called once: by whoever took the state to CLOSED with no call inside, from where it never changes.
    fn free(&self) {
        let guarded = self.guarded.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: `open` made it from a Box, and the swap gives it away only once.
        drop(unsafe { Box::from_raw(guarded) });
    }
}

impl<T: Guarded> Deref for Entered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: set by `open`, and not freed while this stay is counted in `state`.
        unsafe { &*self.cell.guarded.load(Ordering::Relaxed) }
    }
}

impl<T: Guarded> Drop for Entered<T> {
    fn drop(&mut self) {
        if self.cell.state.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            self.cell.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Thing(#[allow(dead_code)] Arc<()>);
    struct Other;
    struct Opaque;

    static THINGS: AtomicPtr<Cell<Thing>> = AtomicPtr::new(null_mut());
    static OTHERS: AtomicPtr<Cell<Other>> = AtomicPtr::new(null_mut());

    impl Guarded for Thing {
        type Opaque = Opaque;
        const NAME: &'static str = "thing";
        const MAGIC: u64 = 1;
        fn cells() -> &'static AtomicPtr<Cell<Self>> {
            &THINGS
        }
    }

    impl Guarded for Other {
        type Opaque = Opaque;
        const NAME: &'static str = "other";
        const MAGIC: u64 = 2;
        fn cells() -> &'static AtomicPtr<Cell<Self>> {
            &OTHERS
        }
    }

    fn message<T>(result: Result<T>) -> String {
        let error = result.err().expect("refused");
        assert_eq!(error.status, SNAPMLA_STATUS_INVALID_HANDLE);
        error.message
    }

    #[test]
    fn destroy_frees_and_is_told_apart_ever_after() {
        let witness = Arc::new(());
        let handle = open(Thing(witness.clone()));
        // SAFETY: a handle of `open`, live or destroyed, all through.
        unsafe {
            assert!(enter::<Thing>(handle).is_ok());
            assert!(close::<Thing>(handle).is_ok());
            assert_eq!(Arc::strong_count(&witness), 1);
            assert!(message(enter::<Thing>(handle)).ends_with("has been destroyed"));
            assert!(message(close::<Thing>(handle)).ends_with("has been destroyed"));
        }
    }

    #[test]
    fn the_last_call_inside_frees() {
        let witness = Arc::new(());
        let handle = open(Thing(witness.clone()));
        // SAFETY: as above.
        unsafe {
            let (one, two) = (enter::<Thing>(handle).unwrap(), enter::<Thing>(handle).unwrap());
            assert!(close::<Thing>(handle).is_ok());
            assert!(enter::<Thing>(handle).is_err());
            drop(one);
            assert_eq!(Arc::strong_count(&witness), 2);
            drop(two);
        }
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn what_is_not_a_handle_of_the_kind_is_refused() {
        let other = open(Other);
        // SAFETY: a handle of another kind, NULL, and a misaligned address inside a cell.
        unsafe {
            assert!(message(enter::<Thing>(other)).ends_with("is not a handle of this kind"));
            assert!(message(enter::<Thing>(other.byte_add(1))).ends_with("is not a handle of this kind"));
            assert_eq!(message(enter::<Thing>(null_mut())), "thing is NULL");
            assert!(close::<Thing>(null_mut()).is_ok());
            assert!(close::<Other>(other).is_ok());
        }
    }

    #[test]
    fn racing_destroys_free_once() {
        for _ in 0..200 {
            let witness = Arc::new(());
            let address = open(Thing(witness.clone())) as usize;
            let destroyed: u32 = std::thread::scope(|scope| {
                let race = || {
                    // SAFETY: a handle of `open`, live or destroyed.
                    let inside = unsafe { enter::<Thing>(address as *const Opaque) };
                    let closed = unsafe { close::<Thing>(address as *mut Opaque) }.is_ok();
                    drop(inside);
                    u32::from(closed)
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!((destroyed, Arc::strong_count(&witness)), (1, 1));
        }
    }
}
