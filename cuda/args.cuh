// The one parameter of each kernel. src/cuda/args.rs mirrors every struct; both sides assert sizes and offsets.
#pragma once

#include "ptx/types.cuh"

#define SNAPMLA_AT(type, field, offset) static_assert(__builtin_offsetof(type, field) == offset, #type "::" #field)

namespace snapmla {

// One layer of the cache.
struct CacheArgs {
    u8* base;
    i64 page_stride;
    i64 num_slots;
    u64 page_divisor;  // see `divide`
    u32 page_size;
    u32 num_pages;
};
static_assert(sizeof(CacheArgs) == 40, "CacheArgs");
SNAPMLA_AT(CacheArgs, page_stride, 8);
SNAPMLA_AT(CacheArgs, num_slots, 16);
SNAPMLA_AT(CacheArgs, page_divisor, 24);
SNAPMLA_AT(CacheArgs, page_size, 32);
SNAPMLA_AT(CacheArgs, num_pages, 36);

struct KAppendArgs {
    CacheArgs cache;
    const u8* content;  // [num_tokens][512] : content_stride
    i64 content_stride;
    const u8* rope;  // [num_tokens][64] : rope_stride
    i64 rope_stride;
    const i64* slots;  // [num_tokens]
    i64 num_tokens;
    u32 vector;  // whether content rows are 16-byte aligned and rope rows aligned to two elements
    u32 reserved;
};
static_assert(sizeof(KAppendArgs) == 96, "KAppendArgs");
SNAPMLA_AT(KAppendArgs, content, 40);
SNAPMLA_AT(KAppendArgs, content_stride, 48);
SNAPMLA_AT(KAppendArgs, rope, 56);
SNAPMLA_AT(KAppendArgs, rope_stride, 64);
SNAPMLA_AT(KAppendArgs, slots, 72);
SNAPMLA_AT(KAppendArgs, num_tokens, 80);
SNAPMLA_AT(KAppendArgs, vector, 88);

// n / d for n < 2^53 and d <= 1024, given divisor = ceil(2^63 / d): the product exceeds n / d by less than 1 / d.
__device__ __forceinline__ u64 divide(u64 n, u64 divisor) {
    return __umul64hi(n << 1, divisor);
}

}  // namespace snapmla
