/*
 * Binary interface version 1, field by field and number by number: never edited, and true of every later header too.
 * Fields may follow the last one here, and constants may be added.
 */
#include "snapmla.h"

#define FIELD(type, name, offset, size)                                       \
  _Static_assert(offsetof(struct type, name) == (offset), #type "." #name);    \
  _Static_assert(sizeof(((struct type *)0)->name) == (size), #type "." #name)
#define VALUE(name, value) _Static_assert((name) == (value), #name)

VALUE(SNAPMLA_CONTENT_DIM, 512);
VALUE(SNAPMLA_ROPE_DIM, 64);
VALUE(SNAPMLA_RECORD_BYTES, 644);
VALUE(SNAPMLA_MAX_HEADS, 128);
VALUE(SNAPMLA_STATUS_OK, 0);
VALUE(SNAPMLA_STATUS_INVALID_ARGUMENT, 1);
VALUE(SNAPMLA_STATUS_UNSUPPORTED, 2);
VALUE(SNAPMLA_STATUS_UNAVAILABLE, 3);
VALUE(SNAPMLA_STATUS_VERSION_MISMATCH, 4);
VALUE(SNAPMLA_STATUS_WORKSPACE_TOO_SMALL, 5);
VALUE(SNAPMLA_STATUS_INVALID_HANDLE, 6);
VALUE(SNAPMLA_STATUS_OUT_OF_MEMORY, 7);
VALUE(SNAPMLA_STATUS_CUDA_ERROR, 8);
VALUE(SNAPMLA_STATUS_INTERNAL, 9);
VALUE(SNAPMLA_BACKEND_AUTO, 0);
VALUE(SNAPMLA_BACKEND_CPU, 1);
VALUE(SNAPMLA_BACKEND_CUDA, 2);
VALUE(SNAPMLA_DTYPE_BF16, 1);
VALUE(SNAPMLA_DTYPE_F16, 2);
VALUE(SNAPMLA_DTYPE_F32, 3);
VALUE(SNAPMLA_DTYPE_QUANTISED, 4);
VALUE(SNAPMLA_CONTEXT_CHECK_POINTERS, 1);
VALUE(SNAPMLA_CACHE_KEEP_CONTENTS, 1);
VALUE(SNAPMLA_DECODE_CAUSAL, 1);
VALUE(SNAPMLA_ALL_LAYERS, -1);
_Static_assert(SNAPMLA_ABI_VERSION >= 1, "SNAPMLA_ABI_VERSION");

FIELD(snapmla_context_params, struct_size, 0, 4);
FIELD(snapmla_context_params, flags, 4, 4);
FIELD(snapmla_context_params, backend, 8, 4);
FIELD(snapmla_context_params, device_ordinal, 12, 4);
FIELD(snapmla_context_params, cpu_threads, 16, 4);

FIELD(snapmla_context_info, struct_size, 0, 4);
FIELD(snapmla_context_info, backend, 4, 4);
FIELD(snapmla_context_info, device_ordinal, 8, 4);
FIELD(snapmla_context_info, parallelism, 12, 4);
FIELD(snapmla_context_info, name, 16, 128);

FIELD(snapmla_cache_params, struct_size, 0, 4);
FIELD(snapmla_cache_params, flags, 4, 4);
FIELD(snapmla_cache_params, page_size, 8, 4);
FIELD(snapmla_cache_params, num_layers, 12, 4);
FIELD(snapmla_cache_params, num_pages, 16, 8);
FIELD(snapmla_cache_params, page_stride, 24, 8);
FIELD(snapmla_cache_params, layer_stride, 32, 8);
FIELD(snapmla_cache_params, memory, 40, 8);
FIELD(snapmla_cache_params, memory_size, 48, 8);

FIELD(snapmla_k_append_params, struct_size, 0, 4);
FIELD(snapmla_k_append_params, flags, 4, 4);
FIELD(snapmla_k_append_params, layer, 8, 4);
FIELD(snapmla_k_append_params, dtype, 12, 4);
FIELD(snapmla_k_append_params, num_tokens, 16, 8);
FIELD(snapmla_k_append_params, content, 24, 8);
FIELD(snapmla_k_append_params, content_stride, 32, 8);
FIELD(snapmla_k_append_params, rope, 40, 8);
FIELD(snapmla_k_append_params, rope_stride, 48, 8);
FIELD(snapmla_k_append_params, slots, 56, 8);

FIELD(snapmla_q_quant_params, struct_size, 0, 4);
FIELD(snapmla_q_quant_params, flags, 4, 4);
FIELD(snapmla_q_quant_params, dtype, 8, 4);
FIELD(snapmla_q_quant_params, num_heads, 12, 4);
FIELD(snapmla_q_quant_params, num_tokens, 16, 8);
FIELD(snapmla_q_quant_params, content, 24, 8);
FIELD(snapmla_q_quant_params, content_token_stride, 32, 8);
FIELD(snapmla_q_quant_params, content_head_stride, 40, 8);
FIELD(snapmla_q_quant_params, rope, 48, 8);
FIELD(snapmla_q_quant_params, rope_token_stride, 56, 8);
FIELD(snapmla_q_quant_params, rope_head_stride, 64, 8);
FIELD(snapmla_q_quant_params, q_content, 72, 8);
FIELD(snapmla_q_quant_params, q_rope, 80, 8);
FIELD(snapmla_q_quant_params, q_scale, 88, 8);

FIELD(snapmla_records_copy_params, struct_size, 0, 4);
FIELD(snapmla_records_copy_params, flags, 4, 4);
FIELD(snapmla_records_copy_params, layer, 8, 4);
FIELD(snapmla_records_copy_params, reserved, 12, 4);
FIELD(snapmla_records_copy_params, num_records, 16, 8);
FIELD(snapmla_records_copy_params, src_slots, 24, 8);
FIELD(snapmla_records_copy_params, dst_slots, 32, 8);

FIELD(snapmla_decode_limits, struct_size, 0, 4);
FIELD(snapmla_decode_limits, flags, 4, 4);
FIELD(snapmla_decode_limits, max_batch, 8, 4);
FIELD(snapmla_decode_limits, max_q_len, 12, 4);
FIELD(snapmla_decode_limits, max_heads, 16, 4);
FIELD(snapmla_decode_limits, max_seq_len, 20, 4);

FIELD(snapmla_decode_params, struct_size, 0, 4);
FIELD(snapmla_decode_params, flags, 4, 4);
FIELD(snapmla_decode_params, layer, 8, 4);
FIELD(snapmla_decode_params, batch, 12, 4);
FIELD(snapmla_decode_params, q_len, 16, 4);
FIELD(snapmla_decode_params, num_heads, 20, 4);
FIELD(snapmla_decode_params, softmax_scale, 24, 4);
FIELD(snapmla_decode_params, q_dtype, 28, 4);
FIELD(snapmla_decode_params, q_content, 32, 8);
FIELD(snapmla_decode_params, q_content_batch_stride, 40, 8);
FIELD(snapmla_decode_params, q_content_token_stride, 48, 8);
FIELD(snapmla_decode_params, q_content_head_stride, 56, 8);
FIELD(snapmla_decode_params, q_rope, 64, 8);
FIELD(snapmla_decode_params, q_rope_batch_stride, 72, 8);
FIELD(snapmla_decode_params, q_rope_token_stride, 80, 8);
FIELD(snapmla_decode_params, q_rope_head_stride, 88, 8);
FIELD(snapmla_decode_params, q_scale, 96, 8);
FIELD(snapmla_decode_params, q_scale_batch_stride, 104, 8);
FIELD(snapmla_decode_params, q_scale_token_stride, 112, 8);
FIELD(snapmla_decode_params, q_scale_head_stride, 120, 8);
FIELD(snapmla_decode_params, cu_q_lens, 128, 8);
FIELD(snapmla_decode_params, seq_lens, 136, 8);
FIELD(snapmla_decode_params, block_table, 144, 8);
FIELD(snapmla_decode_params, block_table_stride, 152, 8);
FIELD(snapmla_decode_params, max_pages, 160, 4);
FIELD(snapmla_decode_params, max_seq_len, 164, 4);
FIELD(snapmla_decode_params, out_dtype, 168, 4);
FIELD(snapmla_decode_params, reserved, 172, 4);
FIELD(snapmla_decode_params, out, 176, 8);
FIELD(snapmla_decode_params, out_batch_stride, 184, 8);
FIELD(snapmla_decode_params, out_token_stride, 192, 8);
FIELD(snapmla_decode_params, out_head_stride, 200, 8);
FIELD(snapmla_decode_params, lse, 208, 8);
FIELD(snapmla_decode_params, lse_batch_stride, 216, 8);
FIELD(snapmla_decode_params, lse_token_stride, 224, 8);
FIELD(snapmla_decode_params, lse_head_stride, 232, 8);
FIELD(snapmla_decode_params, workspace, 240, 8);
FIELD(snapmla_decode_params, workspace_size, 248, 8);

FIELD(snapmla_fetch_params, struct_size, 0, 4);
FIELD(snapmla_fetch_params, flags, 4, 4);
FIELD(snapmla_fetch_params, layer, 8, 4);
FIELD(snapmla_fetch_params, dtype, 12, 4);
FIELD(snapmla_fetch_params, num_tokens, 16, 8);
FIELD(snapmla_fetch_params, slots, 24, 8);
FIELD(snapmla_fetch_params, block_table, 32, 8);
FIELD(snapmla_fetch_params, block_table_stride, 40, 8);
FIELD(snapmla_fetch_params, max_pages, 48, 4);
FIELD(snapmla_fetch_params, batch, 52, 4);
FIELD(snapmla_fetch_params, starts, 56, 8);
FIELD(snapmla_fetch_params, cu_tokens, 64, 8);
FIELD(snapmla_fetch_params, content, 72, 8);
FIELD(snapmla_fetch_params, content_stride, 80, 8);
FIELD(snapmla_fetch_params, rope, 88, 8);
FIELD(snapmla_fetch_params, rope_stride, 96, 8);

FIELD(snapmla_merge_params, struct_size, 0, 4);
FIELD(snapmla_merge_params, flags, 4, 4);
FIELD(snapmla_merge_params, num_parts, 8, 4);
FIELD(snapmla_merge_params, num_heads, 12, 4);
FIELD(snapmla_merge_params, num_tokens, 16, 8);
FIELD(snapmla_merge_params, parts_dtype, 24, 4);
FIELD(snapmla_merge_params, out_dtype, 28, 4);
FIELD(snapmla_merge_params, parts, 32, 8);
FIELD(snapmla_merge_params, parts_part_stride, 40, 8);
FIELD(snapmla_merge_params, parts_token_stride, 48, 8);
FIELD(snapmla_merge_params, parts_head_stride, 56, 8);
FIELD(snapmla_merge_params, parts_lse, 64, 8);
FIELD(snapmla_merge_params, parts_lse_part_stride, 72, 8);
FIELD(snapmla_merge_params, parts_lse_token_stride, 80, 8);
FIELD(snapmla_merge_params, parts_lse_head_stride, 88, 8);
FIELD(snapmla_merge_params, out, 96, 8);
FIELD(snapmla_merge_params, out_token_stride, 104, 8);
FIELD(snapmla_merge_params, out_head_stride, 112, 8);
FIELD(snapmla_merge_params, lse, 120, 8);
FIELD(snapmla_merge_params, lse_token_stride, 128, 8);
FIELD(snapmla_merge_params, lse_head_stride, 136, 8);

FIELD(snapmla_support_query, struct_size, 0, 4);
FIELD(snapmla_support_query, decode_flags, 4, 4);
FIELD(snapmla_support_query, page_size, 8, 4);
FIELD(snapmla_support_query, num_heads, 12, 4);
FIELD(snapmla_support_query, q_len, 16, 4);
FIELD(snapmla_support_query, content_dim, 20, 4);
FIELD(snapmla_support_query, rope_dim, 24, 4);
FIELD(snapmla_support_query, in_dtype, 28, 4);
FIELD(snapmla_support_query, out_dtype, 32, 4);

int main(void) { return 0; }
