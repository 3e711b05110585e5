// The one parameter of each kernel. src/cuda/args.rs mirrors every struct; both sides assert sizes and offsets.
#pragma once

#include "ptx/types.cuh"

// NVRTC has no offsetof; what it compiles, nvcc has seen.
#ifdef __CUDACC_RTC__
#define SNAPMLA_AT(type, field, offset) static_assert(true, "")
#else
#define SNAPMLA_AT(type, field, offset) static_assert(__builtin_offsetof(type, field) == offset, #type "::" #field)
#endif

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

struct QQuantArgs {
    const u8* content;  // [num_rows / num_heads][num_heads][512] : content_token_stride, content_head_stride
    i64 content_token_stride;
    i64 content_head_stride;
    const u8* rope;  // [num_rows / num_heads][num_heads][64] : rope_token_stride, rope_head_stride
    i64 rope_token_stride;
    i64 rope_head_stride;
    u8* q_content;  // [num_rows][512] E4M3
    u8* q_rope;     // [num_rows][64] BF16
    float* q_scale;  // [num_rows]
    i64 num_rows;
    u64 heads_divisor;
    u32 num_heads;
    u32 vector;  // as in KAppendArgs
};
static_assert(sizeof(QQuantArgs) == 96, "QQuantArgs");
SNAPMLA_AT(QQuantArgs, content_token_stride, 8);
SNAPMLA_AT(QQuantArgs, content_head_stride, 16);
SNAPMLA_AT(QQuantArgs, rope, 24);
SNAPMLA_AT(QQuantArgs, rope_token_stride, 32);
SNAPMLA_AT(QQuantArgs, rope_head_stride, 40);
SNAPMLA_AT(QQuantArgs, q_content, 48);
SNAPMLA_AT(QQuantArgs, q_rope, 56);
SNAPMLA_AT(QQuantArgs, q_scale, 64);
SNAPMLA_AT(QQuantArgs, num_rows, 72);
SNAPMLA_AT(QQuantArgs, heads_divisor, 80);
SNAPMLA_AT(QQuantArgs, num_heads, 88);
SNAPMLA_AT(QQuantArgs, vector, 92);

struct RecordsCopyArgs {
    CacheArgs cache;  // the first layer; blockIdx.y counts on from it
    i64 layer_stride;
    const i64* src_slots;  // [num_records]
    const i64* dst_slots;  // [num_records]
    i64 num_records;
};
static_assert(sizeof(RecordsCopyArgs) == 72, "RecordsCopyArgs");
SNAPMLA_AT(RecordsCopyArgs, layer_stride, 40);
SNAPMLA_AT(RecordsCopyArgs, src_slots, 48);
SNAPMLA_AT(RecordsCopyArgs, dst_slots, 56);
SNAPMLA_AT(RecordsCopyArgs, num_records, 64);

struct FetchArgs {
    CacheArgs cache;
    const i64* slots;        // [num_tokens], or NULL: then the tokens are named by sequence
    const i32* block_table;  // [batch][max_pages] : block_table_stride
    i64 block_table_stride;
    const i32* starts;     // [batch], or NULL: 0 for all
    const i32* cu_tokens;  // [batch + 1]
    u32 max_pages;
    u32 batch;
    u8* content;  // [num_tokens][512] : content_stride, or NULL
    i64 content_stride;
    u8* rope;  // [num_tokens][64] : rope_stride, or NULL
    i64 rope_stride;
    i64 num_tokens;
    u32 vector;  // as in KAppendArgs
    u32 rows_per_warp;
};
static_assert(sizeof(FetchArgs) == 136, "FetchArgs");
SNAPMLA_AT(FetchArgs, slots, 40);
SNAPMLA_AT(FetchArgs, block_table, 48);
SNAPMLA_AT(FetchArgs, block_table_stride, 56);
SNAPMLA_AT(FetchArgs, starts, 64);
SNAPMLA_AT(FetchArgs, cu_tokens, 72);
SNAPMLA_AT(FetchArgs, max_pages, 80);
SNAPMLA_AT(FetchArgs, batch, 84);
SNAPMLA_AT(FetchArgs, content, 88);
SNAPMLA_AT(FetchArgs, content_stride, 96);
SNAPMLA_AT(FetchArgs, rope, 104);
SNAPMLA_AT(FetchArgs, rope_stride, 112);
SNAPMLA_AT(FetchArgs, num_tokens, 120);
SNAPMLA_AT(FetchArgs, vector, 128);
SNAPMLA_AT(FetchArgs, rows_per_warp, 132);

enum class Dtype : u32 { BF16 = 1, F16 = 2, F32 = 3 };

struct MergeArgs {
    const u8* parts;  // [num_parts][tokens][num_heads][512] : parts_part_stride, parts_token_stride, parts_head_stride
    i64 parts_part_stride;
    i64 parts_token_stride;
    i64 parts_head_stride;
    const u8* parts_lse;  // [num_parts][tokens][num_heads] F32 : lse_part_stride, lse_token_stride, lse_head_stride
    i64 parts_lse_part_stride;
    i64 parts_lse_token_stride;
    i64 parts_lse_head_stride;
    u8* out;  // [tokens][num_heads][512] : out_token_stride, out_head_stride
    i64 out_token_stride;
    i64 out_head_stride;
    u8* lse;  // [tokens][num_heads] F32 : lse_token_stride, lse_head_stride, or NULL
    i64 lse_token_stride;
    i64 lse_head_stride;
    i64 num_rows;  // tokens * num_heads
    u64 heads_divisor;
    u32 num_heads;
    u32 num_parts;
    Dtype out_dtype;
    u32 vector;  // whether rows of parts and out are 16-byte aligned
};
static_assert(sizeof(MergeArgs) == 144, "MergeArgs");
SNAPMLA_AT(MergeArgs, parts_part_stride, 8);
SNAPMLA_AT(MergeArgs, parts_token_stride, 16);
SNAPMLA_AT(MergeArgs, parts_head_stride, 24);
SNAPMLA_AT(MergeArgs, parts_lse, 32);
SNAPMLA_AT(MergeArgs, parts_lse_part_stride, 40);
SNAPMLA_AT(MergeArgs, parts_lse_token_stride, 48);
SNAPMLA_AT(MergeArgs, parts_lse_head_stride, 56);
SNAPMLA_AT(MergeArgs, out, 64);
SNAPMLA_AT(MergeArgs, out_token_stride, 72);
SNAPMLA_AT(MergeArgs, out_head_stride, 80);
SNAPMLA_AT(MergeArgs, lse, 88);
SNAPMLA_AT(MergeArgs, lse_token_stride, 96);
SNAPMLA_AT(MergeArgs, lse_head_stride, 104);
SNAPMLA_AT(MergeArgs, num_rows, 112);
SNAPMLA_AT(MergeArgs, heads_divisor, 120);
SNAPMLA_AT(MergeArgs, num_heads, 128);
SNAPMLA_AT(MergeArgs, num_parts, 132);
SNAPMLA_AT(MergeArgs, out_dtype, 136);
SNAPMLA_AT(MergeArgs, vector, 140);

// n / d while n * d < 2^63, given divisor = ceil(2^63 / d): the product then exceeds n / d by less than 1 / d. A 64-bit
// division is a loop of its own on the GPU.
__device__ __forceinline__ u64 divide(u64 n, u64 divisor) {
    return __umul64hi(n << 1, divisor);
}

// A record's page and its row there.
struct RecordPlace {
    u8* page;
    u32 row;
};

// `slot` lies in the cache.
__device__ __forceinline__ RecordPlace place_of(const CacheArgs& cache, i64 slot) {
    const u64 page = divide(slot, cache.page_divisor);
    return {cache.base + i64(page) * cache.page_stride, u32(slot - page * cache.page_size)};
}

}  // namespace snapmla
