//! A context with a cache, memory to call on, and the tables' one loop.

use std::ffi::CStr;
use std::ptr::{null_mut, without_provenance_mut};

use snapmla::abi::cache::*;
use snapmla::abi::context::*;
use snapmla::abi::snapmla_stream;
use snapmla::abi::types::*;
use snapmla::abi::version::snapmla_last_error_message;

pub const PAGE_SIZE: u32 = 16;
pub const PAGES: i64 = 4;
pub const LAYERS: u32 = 2;

/// No stream, as the CPU backend wants it.
pub const NO_STREAM: snapmla_stream = null_mut();

/// A stream that the CPU backend must not be given.
pub fn some_stream() -> snapmla_stream {
    without_provenance_mut(0x40)
}

/// A struct of arguments with its size set and everything else zero.
pub fn zeroed<P: Copy>() -> P {
    // SAFETY: the ABI's structs are integers, floats and raw pointers, for which zeros are values.
    let mut params = unsafe { std::mem::zeroed::<P>() };
    // SAFETY: each begins with struct_size.
    unsafe { std::ptr::from_mut(&mut params).cast::<u32>().write(size_of::<P>() as u32) };
    params
}

/// Memory, 256-byte aligned, of bytes that no call has any reason to write.
pub struct Memory {
    bytes: Vec<Line>,
}

#[repr(align(256))]
#[derive(Clone, Copy, PartialEq)]
struct Line([u8; 256]);

const UNTOUCHED: Line = Line([0xa5; 256]);

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self { bytes: vec![UNTOUCHED; bytes.div_ceil(256)] }
    }

    pub fn zeroed(bytes: usize) -> Self {
        Self { bytes: vec![Line([0; 256]); bytes.div_ceil(256)] }
    }

    pub fn ptr<T>(&self) -> *mut T {
        self.bytes.as_ptr().cast_mut().cast()
    }

    pub fn untouched(&self) -> bool {
        self.bytes.iter().all(|line| *line == UNTOUCHED)
    }
}

pub struct Fixture {
    pub context: *mut snapmla_context,
    pub cache: *mut snapmla_cache,
    pub memory: Memory,
}

impl Fixture {
    pub fn new() -> Self {
        let context = cpu_context();
        let memory = Memory::zeroed(644 * 16 * 4 * 2);
        let mut params = cache_params();
        params.memory = memory.ptr();
        params.memory_size = 644 * 16 * 4 * 2;
        params.flags = SNAPMLA_CACHE_KEEP_CONTENTS;
        let mut cache = null_mut();
        // SAFETY: live handles and structs, memory that lives as long as the fixture.
        assert_ok(unsafe { snapmla_cache_init(context, &params, NO_STREAM, &mut cache) });
        Self { context, cache, memory }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // SAFETY: handles that nobody else destroys.
        unsafe {
            assert_ok(snapmla_cache_destroy(self.cache));
            assert_ok(snapmla_context_destroy(self.context));
        }
    }
}

pub fn cpu_context() -> *mut snapmla_context {
    let params = snapmla_context_params { backend: SNAPMLA_BACKEND_CPU, cpu_threads: 1, ..zeroed() };
    let mut context = null_mut();
    // SAFETY: a whole struct and a place for the handle.
    assert_ok(unsafe { snapmla_context_create(&params, &mut context) });
    context
}

pub fn cache_params() -> snapmla_cache_params {
    snapmla_cache_params { page_size: PAGE_SIZE, num_layers: LAYERS, num_pages: PAGES, ..zeroed() }
}

pub fn message() -> String {
    // SAFETY: a C string, valid until this thread's next failure.
    unsafe { CStr::from_ptr(snapmla_last_error_message()) }.to_str().expect("UTF-8").to_owned()
}

pub fn assert_ok(status: snapmla_status) {
    assert_eq!(status, SNAPMLA_STATUS_OK, "{}", message());
}

/// `says` must be in the message; "…" in it stands for anything.
pub fn assert_refused(got: snapmla_status, wanted: snapmla_status, says: &str) {
    let message = message();
    let rest = says.split('…').try_fold(&message[..], |rest, part| rest.split_once(part).map(|(_, after)| after));
    assert!(got == wanted && rest.is_some(), "wanted {wanted} with {says:?}, got {got} with {message:?}");
}

/// What a case breaks, and what the message must hold.
pub type Case<P> = (fn(&mut P), &'static str);

/// Breaks `valid` in one way at a time. Each call must be refused and leave `outputs` alone; `valid` itself must do.
pub fn refuses<P: Copy>(valid: P, outputs: &[&Memory], call: impl Fn(&P) -> snapmla_status, cases: &[Case<P>]) {
    for (change, says) in cases {
        let mut params = valid;
        change(&mut params);
        assert_refused(call(&params), SNAPMLA_STATUS_INVALID_ARGUMENT, says);
        assert!(outputs.iter().all(|output| output.untouched()), "outputs written: {says}");
    }
    assert_ok(call(&valid));
}

/// The same for legal variations.
pub fn accepts<P: Copy>(valid: P, call: impl Fn(&P) -> snapmla_status, changes: &[fn(&mut P)]) {
    for change in changes {
        let mut params = valid;
        change(&mut params);
        assert_ok(call(&params));
    }
}
