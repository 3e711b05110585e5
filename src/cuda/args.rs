//! The one parameter of each kernel, as `cuda/args.cuh` lays it out; both sides assert sizes and offsets.

use crate::request::{CacheView, Dtype};

/// Declares an argument struct: its size, and each field with its offset.
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
pub(super) use kernel_args;

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

kernel_args! {
    QQuantArgs, 96 {
        content: *const u8 = 0,
        content_token_stride: i64 = 8,
        content_head_stride: i64 = 16,
        rope: *const u8 = 24,
        rope_token_stride: i64 = 32,
        rope_head_stride: i64 = 40,
        q_content: *mut u8 = 48,
        q_rope: *mut u8 = 56,
        q_scale: *mut f32 = 64,
        num_rows: i64 = 72,
        heads_divisor: u64 = 80,
        num_heads: u32 = 88,
        vector: u32 = 92,
    }
}

kernel_args! {
    RecordsCopyArgs, 72 {
        cache: CacheArgs = 0,
        layer_stride: i64 = 40,
        src_slots: *const i64 = 48,
        dst_slots: *const i64 = 56,
        num_records: i64 = 64,
    }
}

kernel_args! {
    FetchArgs, 136 {
        cache: CacheArgs = 0,
        slots: *const i64 = 40,
        block_table: *const i32 = 48,
        block_table_stride: i64 = 56,
        starts: *const i32 = 64,
        cu_tokens: *const i32 = 72,
        max_pages: u32 = 80,
        batch: u32 = 84,
        content: *mut u8 = 88,
        content_stride: i64 = 96,
        rope: *mut u8 = 104,
        rope_stride: i64 = 112,
        num_tokens: i64 = 120,
        vector: u32 = 128,
        rows_per_warp: u32 = 132,
    }
}

kernel_args! {
    MergeArgs, 144 {
        parts: *const u8 = 0,
        parts_part_stride: i64 = 8,
        parts_token_stride: i64 = 16,
        parts_head_stride: i64 = 24,
        parts_lse: *const f32 = 32,
        parts_lse_part_stride: i64 = 40,
        parts_lse_token_stride: i64 = 48,
        parts_lse_head_stride: i64 = 56,
        out: *mut u8 = 64,
        out_token_stride: i64 = 72,
        out_head_stride: i64 = 80,
        lse: *mut f32 = 88,
        lse_token_stride: i64 = 96,
        lse_head_stride: i64 = 104,
        num_rows: i64 = 112,
        heads_divisor: u64 = 120,
        num_heads: u32 = 128,
        num_parts: u32 = 132,
        out_dtype: u32 = 136,
        vector: u32 = 140,
    }
}

/// The device's `Dtype`.
pub const fn dtype_code(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::Bf16 => 1,
        Dtype::F16 => 2,
        Dtype::F32 => 3,
    }
}

/// What the kernels' `divide` by `d` wants to know.
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
        // Slots (below 2^41) by page sizes, rows by heads, and as far as it goes.
        for d in (1..=1024).chain([1 << 20, (1 << 30) - 1]) {
            let last = ((1 << 63) / d - d) / d;
            for multiple in [0, 1, 2, (1 << 41) / d, last].map(|multiple| multiple.min(last)) {
                let n = multiple * d;
                assert_eq!(divide(n, divisor(d)), multiple, "{n} / {d}");
                assert_eq!(divide(n + d - 1, divisor(d)), multiple, "{} / {d}", n + d - 1);
            }
        }
    }
}
