// Which query token and head a row is, and where its numbers lie.
#pragma once

#include "decode/args.cuh"
#include "ptx/block.cuh"
#include "ptx/memory.cuh"

namespace snapmla {

// This block's place in the grid: blocks of one worker stand side by side, one a row group.
__device__ __forceinline__ u32 block_worker(const DecodeArgs& args) { return block_index() / args.row_groups; }
__device__ __forceinline__ u32 block_row_group(const DecodeArgs& args) { return block_index() % args.row_groups; }

// Query tokens of a sequence, and the first one's index in a ragged batch.
struct QuerySpan {
    u32 first;
    u32 count;
};

__device__ __forceinline__ QuerySpan query_span(const DecodeArgs& args, u32 sequence) {
    if (args.cu_q_lens == nullptr) return {0, args.q_len};
    const i32 begin = load_i32(args.cu_q_lens + sequence), end = load_i32(args.cu_q_lens + sequence + 1);
    return {u32(begin), u32(min(max(end - begin, 0), i32(args.q_len)))};
}

// Tokens of a sequence that are there to attend to: negative lengths count as 0, long ones are cut.
__device__ __forceinline__ u32 sequence_length(const DecodeArgs& args, u32 sequence) {
    const i32 length = load_i32(args.seq_lens + sequence);
    return min(u32(max(length, 0)), args.max_seq_len);
}

struct Row {
    u32 token;  // query token within the sequence
    u32 head;
};

// Row `index` of a sequence: heads run fastest.
__device__ __forceinline__ Row row_at(const DecodeArgs& args, u32 index) {
    if (args.q_len == 1) return {0, index};
    // Exact as long as index * num_heads < 2^32.
    const u32 token = args.heads_inverse == 0 ? index : __umulhi(index, args.heads_inverse);
    return {token, index - token * args.num_heads};
}

// Byte offset of a row in a tensor.
__device__ __forceinline__ i64 row_offset(const DecodeArgs& args, const BatchRows& rows, u32 sequence, u32 q_first, Row row) {
    const i64 token = args.cu_q_lens == nullptr ? sequence * rows.batch_stride + row.token * rows.token_stride
                                                : (i64(q_first) + row.token) * rows.token_stride;
    return token + row.head * rows.head_stride;
}

}  // namespace snapmla
