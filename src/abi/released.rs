//! The argument structs and the sizes that released headers gave them.

use super::types::*;

/// A struct of the ABI that begins with its own size.
///
/// # Safety
///
/// `repr(C)`, begins with `struct_size: u32`, and every bit pattern is a value of it (integers, floats, raw
/// pointers).
pub unsafe trait AbiStruct: Copy {
    const NAME: &'static str;
    /// Its size in the first released header: no caller can have a smaller one.
    const FIRST_SIZE: usize;
}

macro_rules! released {
    ($($name:ident: $first_size:literal,)*) => {$(
        // SAFETY: types.rs declares it repr(C) with struct_size first, and with fields of such types only.
        unsafe impl AbiStruct for $name {
            const NAME: &'static str = stringify!($name);
            const FIRST_SIZE: usize = $first_size;
        }
        const _: () = assert!(size_of::<$name>() >= $first_size && std::mem::offset_of!($name, struct_size) == 0);
    )*};
}

// Sizes in ABI version 1, on every 64-bit target. Never edited: appended fields make the struct larger, not these.
released! {
    snapmla_context_params: 20,
    snapmla_context_info: 144,
    snapmla_cache_params: 56,
    snapmla_k_append_params: 64,
    snapmla_q_quant_params: 96,
    snapmla_records_copy_params: 40,
    snapmla_decode_limits: 24,
    snapmla_decode_params: 256,
    snapmla_fetch_params: 104,
    snapmla_merge_params: 144,
    snapmla_support_query: 36,
}
