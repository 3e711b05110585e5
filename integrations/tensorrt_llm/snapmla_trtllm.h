/**
 * @file snapmla_trtllm.h
 * TensorRT-LLM's fields of MLA generation as calls of libsnapmla. C++17, header only, needs no CUDA header. README.md says
 * where the calls go.
 *
 * The pool is TensorRT-LLM's own, [blocks][layers][tokens_per_block * 644 bytes]. Block offsets (KVCacheIndex) count a
 * layer's part of a block, and a layer's pointer is the pool's plus its own part: seen with a page stride of one part,
 * offsets are page ids as they stand, and nothing is converted on the device.
 */
#pragma once

#include "snapmla.h"

#ifdef __CUDACC__
#define SNAPMLA_TRTLLM_HD __host__ __device__
#else
#define SNAPMLA_TRTLLM_HD
#endif

namespace snapmla_trtllm
{

/** Top bit of a KVCacheIndex: the block is in the secondary pool, in host memory, where no kernel reads it. */
constexpr uint32_t kSecondaryPool = 0x80000000u;

/** Bytes of a layer's part of a block: what the KV cache manager must allocate in place of tokens_per_block * 576. */
constexpr int64_t blockBytes(int32_t tokensPerBlock)
{
    return int64_t{SNAPMLA_RECORD_BYTES} * tokensPerBlock;
}

/** Number of a block in the pool, from its offset; for host code that speaks of whole blocks. */
SNAPMLA_TRTLLM_HD constexpr int32_t blockOf(int32_t offset, int32_t numLayers)
{
    return static_cast<int32_t>(static_cast<uint32_t>(offset) & ~kSecondaryPool) / numLayers;
}

/** Slot of a sequence's token, from the sequence's K row of the block offsets; -1, which is skipped, in the secondary pool. */
SNAPMLA_TRTLLM_HD inline int64_t slotOf(int32_t const* offsets, int32_t position, int32_t tokensPerBlock)
{
    int32_t const offset = offsets[position / tokensPerBlock];
    return offset < 0 ? -1 : int64_t{offset} * tokensPerBlock + position % tokensPerBlock;
}

/** One layer's view of the pool. `poolPtr`, `poolBytes`: all of the primary pool. Destroy it with snapmla_cache_destroy. */
inline snapmla_status openLayer(snapmla_context* context, void* poolPtr, uint64_t poolBytes, int32_t numLayers,
    int32_t layerInPool, int32_t tokensPerBlock, snapmla_stream stream, snapmla_cache** out)
{
    int64_t const part = blockBytes(tokensPerBlock), before = part * layerInPool;
    snapmla_cache_params params = SNAPMLA_CACHE_PARAMS_INIT;
    // The other layers' parts are seen as well, and are not this layer's to fill.
    params.flags = SNAPMLA_CACHE_KEEP_CONTENTS;
    params.page_size = static_cast<uint32_t>(tokensPerBlock);
    // Of the last block, only this layer's part: its offset is the largest.
    params.num_pages = static_cast<int64_t>(poolBytes) / part - numLayers + 1;
    params.memory = static_cast<char*>(poolPtr) + before;
    params.memory_size = poolBytes - static_cast<uint64_t>(before);
    return snapmla_cache_init(context, &params, stream, out);
}

/** Bytes to add to the workspace of AttentionOp. */
inline snapmla_status workspaceSize(snapmla_context const* context, int32_t maxRequests, int32_t maxQLen, int32_t numHeads,
    int32_t maxSeqLen, uint64_t* bytes)
{
    snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
    limits.max_batch = static_cast<uint32_t>(maxRequests);
    limits.max_q_len = static_cast<uint32_t>(maxQLen);
    limits.max_heads = static_cast<uint32_t>(numHeads);
    limits.max_seq_len = static_cast<uint32_t>(maxSeqLen);
    return snapmla_decode_workspace_size(context, &limits, bytes);
}

/** In place of the pool's write in mla_rope_generation. `latentCache`: [tokens][576], 512 then 64 after RoPE. */
inline snapmla_status append(snapmla_context* context, snapmla_cache* layer, snapmla_dtype dtype, void const* latentCache,
    int64_t const* slots, int64_t numTokens, snapmla_stream stream)
{
    int64_t const element = dtype == SNAPMLA_DTYPE_F32 ? 4 : 2;
    snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
    params.dtype = dtype;
    params.num_tokens = numTokens;
    params.content = latentCache;
    params.rope = latentCache == nullptr
        ? nullptr : static_cast<char const*>(latentCache) + SNAPMLA_CONTENT_DIM * element;
    params.content_stride = params.rope_stride = (SNAPMLA_CONTENT_DIM + SNAPMLA_ROPE_DIM) * element;
    params.slots = slots;
    return snapmla_k_append(context, layer, &params, stream);
}

/** What mlaGeneration has at hand; named as there. */
struct Generation
{
    snapmla_dtype dtype = SNAPMLA_DTYPE_BF16;   //!< T, of queries and output
    void const* q_buf = nullptr;                //!< [acc_q_len][head_num][576], absorbed 512 first, 64 after RoPE
    void* context_buf = nullptr;                //!< [acc_q_len][head_num][512]
    int32_t const* block_offsets = nullptr;     //!< kv_cache_buffer.data: KVCacheIndex, [batch_size][2][max_blocks]
    int32_t const* cache_seq_lens = nullptr;    //!< [batch_size], the new tokens included
    void* workspace = nullptr;
    uint64_t workspace_size = 0;
    int32_t batch_size = 0;
    int32_t acc_q_len = 0;                      //!< batch_size times the query tokens of a request
    int32_t head_num = 0;
    int32_t max_blocks = 0;
    int32_t max_seq_len = 0;                    //!< a bound known on the host, 0 for max_blocks * tokens_per_block
    float host_bmm1_scale = 0.0f;               //!< 1 / (q_scaling * sqrt(qk_nope + qk_rope))
};

/** The branch in AttentionOp::mlaGeneration. */
inline snapmla_status generation(
    snapmla_context* context, snapmla_cache const* layer, Generation const& fields, snapmla_stream stream)
{
    int64_t const element = fields.dtype == SNAPMLA_DTYPE_F32 ? 4 : 2;
    int64_t const row = (SNAPMLA_CONTENT_DIM + SNAPMLA_ROPE_DIM) * element;
    snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
    params.flags = SNAPMLA_DECODE_CAUSAL;
    params.batch = static_cast<uint32_t>(fields.batch_size);
    params.q_len = fields.batch_size > 0 ? static_cast<uint32_t>(fields.acc_q_len / fields.batch_size) : 1;
    params.num_heads = static_cast<uint32_t>(fields.head_num);
    params.softmax_scale = fields.host_bmm1_scale;
    params.q_dtype = params.out_dtype = fields.dtype;
    params.q_content = fields.q_buf;
    params.q_rope = fields.q_buf == nullptr
        ? nullptr : static_cast<char const*>(fields.q_buf) + SNAPMLA_CONTENT_DIM * element;
    params.q_content_head_stride = params.q_rope_head_stride = row;
    params.q_content_token_stride = params.q_rope_token_stride = row * fields.head_num;
    params.q_content_batch_stride = params.q_rope_batch_stride = row * fields.head_num * params.q_len;
    params.seq_lens = fields.cache_seq_lens;
    params.block_table = fields.block_offsets;
    params.block_table_stride = int64_t{2} * fields.max_blocks * static_cast<int64_t>(sizeof(int32_t));
    params.max_pages = static_cast<uint32_t>(fields.max_blocks);
    params.max_seq_len = static_cast<uint32_t>(fields.max_seq_len);
    params.out = fields.context_buf;
    params.workspace = fields.workspace;
    params.workspace_size = fields.workspace_size;
    return snapmla_decode(context, layer, &params, stream);
}

} // namespace snapmla_trtllm
