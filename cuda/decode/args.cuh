// What the host passes to a decode kernel. Mirrored by src/cuda/decode.rs; sizes and offsets are asserted there.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// Rows by (sequence, query token, head): strides in bytes.
struct BatchRows {
    u8* ptr;
    i64 batch_stride;
    i64 token_stride;
    i64 head_stride;
};

// The numbers of the ABI's snapmla_dtype.
enum ElementKind : u32 { ELEMENT_BF16 = 1, ELEMENT_F16 = 2, ELEMENT_F32 = 3, ELEMENT_QUANTISED = 4 };

struct DecodeArgs {
    const u8* pages;        // page 0 of the layer
    i64 page_stride;        // bytes
    const i32* seq_lens;    // [batch]
    const i32* cu_q_lens;   // [batch + 1], or NULL: q_len each
    const u8* block_table;  // i32 [batch][max_pages]
    i64 block_table_stride; // bytes
    BatchRows q_content;    // [tokens][heads][512]
    BatchRows q_rope;       // [tokens][heads][64]
    BatchRows q_scale;      // f32 [tokens][heads], quantised queries only
    BatchRows out;          // [tokens][heads][512]
    BatchRows lse;          // f32 [tokens][heads], or NULL
    float4* partial_out;    // [2 * workers][row groups][ROWS * 128]: unfinished O, in accumulator order
    float2* partial_stats;  // [2 * workers][row groups][ROWS]: (reference, sum)
    u32 batch;
    u32 q_len;              // query tokens of a sequence, or the most that one has
    u32 num_heads;
    u32 num_pages;
    u32 page_size;
    u32 max_seq_len;
    u32 row_groups;         // groups of ROWS rows that the longest query has
    u32 workers;            // blocks a row group
    u32 min_split_tiles;    // a split is no shorter than this
    u32 q_kind;             // ElementKind
    u32 out_kind;           // ElementKind
    u32 causal;
    u32 q_vectors;          // queries may be read 16 bytes at a time
    u32 out_vectors;        // outputs may be written two elements at a time
    float scale_log2;       // softmax_scale * log2(e)
    float masked;           // the logit, before scaling, that comes out as -infinity
    u32 heads_inverse;      // ceil(2^32 / num_heads); 0 for one head
    float workers_inverse;  // 1 / workers, rounded down
};
static_assert(sizeof(DecodeArgs) == 296, "DecodeArgs must match src/cuda/decode.rs");

}  // namespace snapmla
