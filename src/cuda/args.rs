//! The one parameter of each kernel, as `cuda/args.cuh` lays it out; both sides assert sizes and offsets.

use crate::request::CacheView;

macro_rules! kernel_args {
    ($(#[$doc:meta])* $name:ident, $size:literal { $($field:ident: $ty:ty = $offset:literal,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name {
            $(pub $field: $ty,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(std::mem::offset_of!($name, $field) == $offset);)*
        };
    };
}

kernel_args! {
    /// One layer of the cache.
    CacheArgs, 40 {
        base: *mut u8 = 0,
        page_stride: i64 = 8,
        num_slots: i64 = 16,
        page_divisor: u64 = 24,
        page_size: u32 = 32,
        num_pages: u32 = 36,
    }
}

impl CacheArgs {
    pub fn new(cache: &CacheView, layer: usize) -> Self {
        Self {
            base: cache.layer_base(layer),
            page_stride: cache.page_stride,
            num_slots: cache.num_slots(),
            page_divisor: divisor(cache.page_size as u64),
            page_size: cache.page_size as u32,
            num_pages: cache.num_pages as u32,
        }
    }
}

kernel_args! {
    KAppendArgs, 96 {
        cache: CacheArgs = 0,
        content: *const u8 = 40,
        content_stride: i64 = 48,
        rope: *const u8 = 56,
        rope_stride: i64 = 64,
        slots: *const i64 = 72,
        num_tokens: i64 = 80,
        vector: u32 = 88,
        reserved: u32 = 92,
    }
}

/// What the kernels' `divide` wants to know of `d`, at most 1024.
pub const fn divisor(d: u64) -> u64 {
    (1u64 << 63).div_ceil(d)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `divide` of cuda/args.cuh.
    fn divide(n: u64, divisor: u64) -> u64 {
        ((u128::from(n << 1) * u128::from(divisor)) >> 64) as u64
    }

    #[test]
    fn division_is_exact() {
        for d in 1..=1024 {
            for multiple in [0, 1, 2, 1 << 20, (1 << 41) / d, ((1 << 53) - 1) / d] {
                let n = multiple * d;
                assert_eq!(divide(n, divisor(d)), multiple, "{n} / {d}");
                assert_eq!(divide(n + d - 1, divisor(d)), multiple, "{} / {d}", n + d - 1);
            }
        }
    }
}
