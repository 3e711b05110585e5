// ggml operations as libsnapmla's arguments, for a fork of ggml-cuda: see GUIDE.md beside this file.
//
// Nothing here allocates, waits or reads device memory, so it may run while a graph is captured. Every function returns
// what the library is to be called with; the fork makes the call, on its own stream.
#pragma once

#include "ggml.h"
#include "snapmla.h"

#include <cstdint>
#include <cstring>

// Operands that the fork adds to FLASH_ATTN_EXT, I32 in device memory.
constexpr int SNAPMLA_GGML_SRC_SEQ_LENS    = 5; // [n_stream]: cells that the stream's last query attends to
constexpr int SNAPMLA_GGML_SRC_BLOCK_TABLE = 6; // [pages, n_stream]

constexpr int64_t SNAPMLA_GGML_ROW  = SNAPMLA_CONTENT_DIM + SNAPMLA_ROPE_DIM;
constexpr int64_t SNAPMLA_GGML_PAGE = 64;

// The library's name of a type; 0 for one that it does not take.
inline snapmla_dtype snapmla_ggml_dtype(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:  return SNAPMLA_DTYPE_F32;
        case GGML_TYPE_F16:  return SNAPMLA_DTYPE_F16;
        case GGML_TYPE_BF16: return SNAPMLA_DTYPE_BF16;
        default:             return 0;
    }
}

// The tensor that owns a cache's memory, given it or a view.
inline const ggml_tensor * snapmla_ggml_cache(const ggml_tensor * tensor) {
    return tensor->view_src != nullptr ? tensor->view_src : tensor;
}

// For snapmla_cache_init, once a layer. `cache`: [576, cells, n_stream], cells a multiple of 64, at least 644 bytes a cell
// allocated (snapmla_ggml_cache_bytes).
inline snapmla_cache_params snapmla_ggml_cache_params(const ggml_tensor * cache) {
    snapmla_cache_params params = SNAPMLA_CACHE_PARAMS_INIT;
    params.flags       = SNAPMLA_CACHE_KEEP_CONTENTS;
    params.page_size   = SNAPMLA_GGML_PAGE;
    params.num_pages   = ggml_nrows(cache) / SNAPMLA_GGML_PAGE;
    params.memory      = cache->data;
    params.memory_size = static_cast<uint64_t>(ggml_nrows(cache)) * SNAPMLA_RECORD_BYTES;
    return params;
}

// For the buffer type's get_alloc_size.
inline size_t snapmla_ggml_cache_bytes(const ggml_tensor * cache) {
    const size_t records = static_cast<size_t>(ggml_nrows(cache)) * SNAPMLA_RECORD_BYTES;
    return records > ggml_nbytes(cache) ? records : ggml_nbytes(cache);
}

// SET_ROWS into a whole cache, by I64 indices.
inline bool snapmla_ggml_set_rows_supported(const ggml_tensor * op) {
    const ggml_tensor * rows    = op->src[0];
    const ggml_tensor * indices = op->src[1];
    return op->ne[0] == SNAPMLA_GGML_ROW && op->view_offs == 0 && op->ne[1] % SNAPMLA_GGML_PAGE == 0 &&
           snapmla_ggml_dtype(rows->type) != 0 && rows->ne[0] == SNAPMLA_GGML_ROW && rows->ne[2] == 1 && rows->ne[3] == 1 &&
           rows->nb[0] == ggml_type_size(rows->type) && indices->type == GGML_TYPE_I64 && ggml_is_contiguous(indices) &&
           ggml_nelements(indices) == rows->ne[1];
}

// For snapmla_k_append.
inline snapmla_k_append_params snapmla_ggml_set_rows_params(const ggml_tensor * op) {
    const ggml_tensor * rows = op->src[0];
    snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
    params.dtype          = snapmla_ggml_dtype(rows->type);
    params.num_tokens     = rows->ne[1];
    params.content        = rows->data;
    params.content_stride = static_cast<int64_t>(rows->nb[1]);
    params.rope           = static_cast<const char *>(rows->data) + SNAPMLA_CONTENT_DIM * rows->nb[0];
    params.rope_stride    = static_cast<int64_t>(rows->nb[1]);
    params.slots          = static_cast<const int64_t *>(op->src[1]->data);
    return params;
}

inline float snapmla_ggml_op_param(const ggml_tensor * op, int i) {
    float value;
    memcpy(&value, op->op_params + i, sizeof value);
    return value;
}

// FLASH_ATTN_EXT 576/512 over a cache, with the operands that the fork adds.
inline bool snapmla_ggml_attention_supported(const ggml_tensor * op) {
    const ggml_tensor * q     = op->src[0];
    const ggml_tensor * k     = op->src[1];
    const ggml_tensor * v     = op->src[2];
    const ggml_tensor * lens  = op->src[SNAPMLA_GGML_SRC_SEQ_LENS];
    const ggml_tensor * table = op->src[SNAPMLA_GGML_SRC_BLOCK_TABLE];
    return lens != nullptr && table != nullptr && lens->type == GGML_TYPE_I32 && table->type == GGML_TYPE_I32 &&
           ggml_is_contiguous(lens) && ggml_is_contiguous(table) && lens->ne[0] == q->ne[3] && table->ne[1] == q->ne[3] &&
           snapmla_ggml_dtype(q->type) != 0 && q->ne[0] == SNAPMLA_GGML_ROW && q->nb[0] == ggml_type_size(q->type) &&
           q->ne[2] <= SNAPMLA_MAX_HEADS && k->ne[0] == SNAPMLA_GGML_ROW && k->ne[2] == 1 && v->ne[0] == SNAPMLA_CONTENT_DIM &&
           snapmla_ggml_cache(v) == snapmla_ggml_cache(k) && v->view_offs == k->view_offs && op->src[4] == nullptr &&
           op->type == GGML_TYPE_F32 && snapmla_ggml_op_param(op, 1) == 0.0f && snapmla_ggml_op_param(op, 2) == 0.0f;
}

// The limits that the operation's shape sets: they, not its data, decide the workspace.
inline snapmla_decode_limits snapmla_ggml_attention_limits(const ggml_tensor * op) {
    const ggml_tensor * q = op->src[0];
    snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
    limits.max_batch   = static_cast<uint32_t>(q->ne[3]);
    limits.max_q_len   = static_cast<uint32_t>(q->ne[1]);
    limits.max_heads   = static_cast<uint32_t>(q->ne[2]);
    limits.max_seq_len = static_cast<uint32_t>(op->src[SNAPMLA_GGML_SRC_BLOCK_TABLE]->ne[0] * SNAPMLA_GGML_PAGE);
    return limits;
}

// Where the workspace begins after an operation's own result: 256-byte aligned from any 256-byte aligned result.
inline size_t snapmla_ggml_workspace_offset(const ggml_tensor * op) {
    return (ggml_nbytes(op) + 255) / 256 * 256;
}

// For the buffer type's get_alloc_size: the result, then the workspace; 0 where the library refuses the limits.
inline size_t snapmla_ggml_attention_alloc_size(const snapmla_context * context, const ggml_tensor * op) {
    const snapmla_decode_limits limits = snapmla_ggml_attention_limits(op);
    uint64_t workspace = 0;
    if (snapmla_decode_workspace_size(context, &limits, &workspace) != SNAPMLA_STATUS_OK) {
        return 0;
    }
    return snapmla_ggml_workspace_offset(op) + workspace;
}

// For snapmla_decode. `alloc_size`: what snapmla_ggml_attention_alloc_size said for the operation.
inline snapmla_decode_params snapmla_ggml_attention_params(const ggml_tensor * op, size_t alloc_size) {
    const ggml_tensor * q     = op->src[0];
    const ggml_tensor * table = op->src[SNAPMLA_GGML_SRC_BLOCK_TABLE];
    snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
    params.flags                  = SNAPMLA_DECODE_CAUSAL;
    params.batch                  = static_cast<uint32_t>(q->ne[3]);
    params.q_len                  = static_cast<uint32_t>(q->ne[1]);
    params.num_heads              = static_cast<uint32_t>(q->ne[2]);
    params.softmax_scale          = snapmla_ggml_op_param(op, 0);
    params.q_dtype                = snapmla_ggml_dtype(q->type);
    params.q_content              = q->data;
    params.q_content_batch_stride = static_cast<int64_t>(q->nb[3]);
    params.q_content_token_stride = static_cast<int64_t>(q->nb[1]);
    params.q_content_head_stride  = static_cast<int64_t>(q->nb[2]);
    params.q_rope                 = static_cast<const char *>(q->data) + SNAPMLA_CONTENT_DIM * q->nb[0];
    params.q_rope_batch_stride    = params.q_content_batch_stride;
    params.q_rope_token_stride    = params.q_content_token_stride;
    params.q_rope_head_stride     = params.q_content_head_stride;
    params.seq_lens               = static_cast<const int32_t *>(op->src[SNAPMLA_GGML_SRC_SEQ_LENS]->data);
    params.block_table            = static_cast<const int32_t *>(table->data);
    params.max_pages              = static_cast<uint32_t>(table->ne[0]);
    params.out_dtype              = SNAPMLA_DTYPE_F32;
    params.out                    = op->data;
    params.out_batch_stride       = static_cast<int64_t>(op->nb[3]);
    params.out_token_stride       = static_cast<int64_t>(op->nb[2]);
    params.out_head_stride        = static_cast<int64_t>(op->nb[1]);
    params.workspace_size         = alloc_size - snapmla_ggml_workspace_offset(op);
    params.workspace              = params.workspace_size == 0 ? nullptr : static_cast<char *>(op->data) + snapmla_ggml_workspace_offset(op);
    return params;
}
