/**
 * @file snapmla.h
 * FP8 multi-head latent attention decoding over a paged FP8 latent cache.
 *
 * Generated from src/abi by the build: edit there.
 *
 * The caller owns scheduler, page tables, memory and streams; the library owns the cache format and the operations on
 * it:
 *
 *     snapmla_context_create            open a backend (CPU, or CUDA on Hopper)
 *     snapmla_cache_init                see the caller's memory as a cache
 *     snapmla_k_append                  quantise new latent tokens into it
 *     snapmla_q_quant                   quantise absorbed queries
 *     snapmla_decode                    attention over cached tokens
 *     snapmla_fetch_dequant             read cached tokens back
 *     snapmla_records_copy              move records between slots
 *     snapmla_merge                     combine partial results
 *
 * What holds for every function:
 *
 * - It returns a status, and on failure leaves a message for the calling thread (snapmla_last_error_message). A
 *   failing call launches nothing and writes no output, but for SNAPMLA_STATUS_CUDA_ERROR and SNAPMLA_STATUS_INTERNAL.
 * - It never prints, exits, aborts or throws.
 * - It may be called from any thread, and handles may be used by several threads at once. What a call touches is
 *   ordered by the stream that it is given and by nothing else; on the CPU backend, by its return.
 * - A struct of arguments is read during the call and may be reused at once. Set it with its _INIT macro, which also
 *   sets struct_size: how the library knows which version of the header the caller has.
 * - Strides are bytes, and 0 means packed: the rows of the dimension inside, one after another. A dimension of one
 *   entry strides nowhere, and what its stride says is not looked at. Dimensions may lie in memory in any order, but
 *   their rows may not overlap.
 * - Tensors are aligned to their elements, and so are their strides.
 */
#ifndef SNAPMLA_H
#define SNAPMLA_H

#include <stddef.h>
#include <stdint.h>

/** Major of the version that this header is from. */
#define SNAPMLA_VERSION_MAJOR 0
/** Minor of the version that this header is from. */
#define SNAPMLA_VERSION_MINOR 1
/** Patch of the version that this header is from. */
#define SNAPMLA_VERSION_PATCH 0
/** The version that this header is from; snapmla_version() gives the library's. */
#define SNAPMLA_VERSION_STRING "0.1.0"

/** A CUDA stream: a cudaStream_t or a CUstream passes without a cast. NULL is the default stream. */
typedef struct CUstream_st *snapmla_stream;

/** Version of the binary interface. A library serves every caller built against an equal or older one. */
#define SNAPMLA_ABI_VERSION 1

/** Numbers in a latent row: the content part of K, and all of V. */
#define SNAPMLA_CONTENT_DIM 512

/** Numbers in a decoupled positional (RoPE) row. */
#define SNAPMLA_ROPE_DIM 64

/** Bytes that the cache keeps of one token: 512 E4M3, 64 BF16, one F32. */
#define SNAPMLA_RECORD_BYTES 644

/** Most query heads in one call. */
#define SNAPMLA_MAX_HEADS 128

/**
 * `snapmla_context_params.flags`: the CUDA backend asks the driver about every pointer of every call and refuses
 * those the device cannot reach. For bringing an engine up: it costs about a microsecond a call.
 */
#define SNAPMLA_CONTEXT_CHECK_POINTERS 1

/** `snapmla_cache_params.flags`: keep what the memory holds (pages received from elsewhere) instead of zero-filling it. */
#define SNAPMLA_CACHE_KEEP_CONTENTS 1

/** `snapmla_decode_params.flags`: query i of q_len attends only to the first `seq_len - q_len + i + 1` tokens. */
#define SNAPMLA_DECODE_CAUSAL 1

/**
 * `snapmla_decode_params.flags`: the bits of a sequence's rows depend on its own queries, records and length, and on
 * the call's `num_heads`, `q_len`, `softmax_scale`, types and flags, but on nothing else: not on `batch`, the other
 * sequences, the sequence's place among them, page ids or the GPU's number of multiprocessors. The CPU backend always
 * works so. CUDA cuts a sequence by its length alone, which costs time where sequences are few and workspace where
 * they are many: `snapmla_decode_limits.flags` must say so too.
 */
#define SNAPMLA_DECODE_BATCH_INVARIANT 2

/** `layer` value that means every layer, where a function says that it takes it. */
#define SNAPMLA_ALL_LAYERS (-1)

/** A paged latent cache in the caller's memory. Any number of threads may use one at once. */
typedef struct snapmla_cache snapmla_cache;

/** An opened backend. Any number of threads may use one at once. */
typedef struct snapmla_context snapmla_context;

/** Result of every fallible function. Values are never renumbered; a newer library may add some. */
typedef int32_t snapmla_status;

/** Which implementation a context uses. */
typedef uint32_t snapmla_backend;

/** What `snapmla_context_create` makes. Set it with `SNAPMLA_CONTEXT_PARAMS_INIT` first. */
typedef struct snapmla_context_params {
  /** `sizeof(struct snapmla_context_params)`. */
  uint32_t struct_size;
  /** 0 or `SNAPMLA_CONTEXT_CHECK_POINTERS`. */
  uint32_t flags;
  /** `SNAPMLA_BACKEND_AUTO`, `_CPU` or `_CUDA`. */
  snapmla_backend backend;
  /** CUDA device ordinal, from 0. The CPU backend ignores it. */
  int32_t device_ordinal;
  /** Threads of the CPU backend; 0 means one for each core the process may use. CUDA ignores it. */
  uint32_t cpu_threads;
} snapmla_context_params;

/** What `snapmla_context_describe` fills in. Set it with `SNAPMLA_CONTEXT_INFO_INIT` first. */
typedef struct snapmla_context_info {
  /** `sizeof(struct snapmla_context_info)`; no byte past it is written. */
  uint32_t struct_size;
  /** `SNAPMLA_BACKEND_CPU` or `SNAPMLA_BACKEND_CUDA`. */
  snapmla_backend backend;
  /** CUDA device ordinal; -1 on the CPU backend. */
  int32_t device_ordinal;
  /** Worker threads on the CPU backend, streaming multiprocessors on CUDA. */
  uint32_t parallelism;
  /**
   * NUL-terminated: the device's name, or the instruction set in use on the CPU ("avx512_bf16", "avx512", "avx2",
   * "portable").
   */
  char name[128];
} snapmla_context_info;

/** Element type of a caller's tensor. */
typedef uint32_t snapmla_dtype;

/** A question to `snapmla_supports`. Set it with `SNAPMLA_SUPPORT_QUERY_INIT` first. */
typedef struct snapmla_support_query {
  /** `sizeof(struct snapmla_support_query)`. */
  uint32_t struct_size;
  /** The flags that `snapmla_decode` would be given. */
  uint32_t decode_flags;
  /** Tokens a page. */
  uint32_t page_size;
  /** Heads in a decode call. */
  uint32_t num_heads;
  /** Query tokens a sequence in a decode call. */
  uint32_t q_len;
  /** Numbers in a content row; 512. */
  uint32_t content_dim;
  /** Numbers in a rope row; 64. */
  uint32_t rope_dim;
  /** Element type of raw queries and new keys, or `SNAPMLA_DTYPE_QUANTISED`. */
  snapmla_dtype in_dtype;
  /** Element type of the output. */
  snapmla_dtype out_dtype;
  /** 1 to ask about decode over `slots`, 0 for a `block_table`. */
  uint32_t over_slots;
} snapmla_support_query;

/**
 * Where a paged latent cache lives. Set it with `SNAPMLA_CACHE_PARAMS_INIT` first.
 *
 * Page p of layer l is the `644 * page_size` bytes from `memory + l * layer_stride + p * page_stride`. Pages must
 * not overlap: either layers lie outside pages (`layer_stride` past the last page) or inside (`page_stride` past
 * the last layer).
 */
typedef struct snapmla_cache_params {
  /** `sizeof(struct snapmla_cache_params)`. */
  uint32_t struct_size;
  /** 0 or `SNAPMLA_CACHE_KEEP_CONTENTS`. */
  uint32_t flags;
  /** Tokens a page: a multiple of 8 from 8 to 1024. 64 is the fast path. */
  uint32_t page_size;
  /** Layers, at least 1. */
  uint32_t num_layers;
  /** Pages a layer, at least 1 and at most 2147483647. */
  int64_t num_pages;
  /** Bytes from a page to the next: a multiple of 16, at least `644 * page_size`. 0 means just that. */
  int64_t page_stride;
  /** Bytes from a layer to the next: a multiple of 16. 0 means `num_pages * page_stride`. */
  int64_t layer_stride;
  /**
   * The caller's memory, 16-byte aligned: host memory for the CPU backend, device memory for CUDA. The caller
   * keeps it alive until `snapmla_cache_destroy` and frees it.
   */
  void *memory;
  /** Bytes at `memory`, at least what `snapmla_cache_size` says. */
  uint64_t memory_size;
} snapmla_cache_params;

/** New tokens for the cache. Set it with `SNAPMLA_K_APPEND_PARAMS_INIT` first. Strides are bytes; 0 means packed. */
typedef struct snapmla_k_append_params {
  /** `sizeof(struct snapmla_k_append_params)`. */
  uint32_t struct_size;
  /** 0. */
  uint32_t flags;
  /** Which layer of the cache. */
  int32_t layer;
  /** Element type of `content` and `rope`: BF16, F16 or F32. */
  snapmla_dtype dtype;
  /** Tokens; 0 is legal and does nothing. */
  int64_t num_tokens;
  /** Latents c_KV, [num_tokens][512]. */
  const void *content;
  /** Bytes from a token's content to the next one's. */
  int64_t content_stride;
  /** Positional keys, [num_tokens][64], after RoPE. */
  const void *rope;
  /** Bytes from a token's rope to the next one's. */
  int64_t rope_stride;
  /** Where each token goes, [num_tokens]: `page * page_size + offset`; negative means skip. */
  const int64_t *slots;
} snapmla_k_append_params;

/** Queries to quantise. Set it with `SNAPMLA_Q_QUANT_PARAMS_INIT` first. Strides are bytes; 0 means packed. */
typedef struct snapmla_q_quant_params {
  /** `sizeof(struct snapmla_q_quant_params)`. */
  uint32_t struct_size;
  /** 0. */
  uint32_t flags;
  /** Element type of `content` and `rope`: BF16, F16 or F32. */
  snapmla_dtype dtype;
  /** Heads, 1 to 128. */
  uint32_t num_heads;
  /** Query tokens; 0 is legal and does nothing. */
  int64_t num_tokens;
  /** Absorbed queries, [num_tokens][num_heads][512]. */
  const void *content;
  /** Bytes between tokens of `content`. */
  int64_t content_token_stride;
  /** Bytes between heads of `content`. */
  int64_t content_head_stride;
  /** Positional queries, [num_tokens][num_heads][64], after RoPE. */
  const void *rope;
  /** Bytes between tokens of `rope`. */
  int64_t rope_token_stride;
  /** Bytes between heads of `rope`. */
  int64_t rope_head_stride;
  /** Out: E4M3 content, [num_tokens][num_heads][512], packed, 16-byte aligned. */
  void *q_content;
  /** Out: BF16 rope divided by the scale, [num_tokens][num_heads][64], packed, 16-byte aligned. */
  void *q_rope;
  /** Out: F32 scale, [num_tokens][num_heads], packed. */
  float *q_scale;
} snapmla_q_quant_params;

/** Records to copy. Set it with `SNAPMLA_RECORDS_COPY_PARAMS_INIT` first. */
typedef struct snapmla_records_copy_params {
  /** `sizeof(struct snapmla_records_copy_params)`. */
  uint32_t struct_size;
  /** 0. */
  uint32_t flags;
  /** Which layer, or `SNAPMLA_ALL_LAYERS`. */
  int32_t layer;
  /** 0. */
  uint32_t reserved;
  /** Pairs of slots; 0 is legal and does nothing. */
  int64_t num_records;
  /** Slots to read, [num_records]; negative means skip the pair. */
  const int64_t *src_slots;
  /**
   * Slots to write, [num_records]; negative means skip the pair. No slot may be both read and written in one
   * call, nor written twice: the order of the copies is not defined.
   */
  const int64_t *dst_slots;
} snapmla_records_copy_params;

/** Upper bounds of the decode calls that will share a workspace. Set it with `SNAPMLA_DECODE_LIMITS_INIT` first. */
typedef struct snapmla_decode_limits {
  /** `sizeof(struct snapmla_decode_limits)`. */
  uint32_t struct_size;
  /** 0, or `SNAPMLA_DECODE_BATCH_INVARIANT` where some of the calls have that flag. */
  uint32_t flags;
  /** Most sequences in a call. */
  uint32_t max_batch;
  /** Most query tokens of one sequence in a call. */
  uint32_t max_q_len;
  /** Most heads in a call, 1 to 128. */
  uint32_t max_heads;
  /** Most cached tokens of one sequence. */
  uint32_t max_seq_len;
} snapmla_decode_limits;

/**
 * One attention call. Set it with `SNAPMLA_DECODE_PARAMS_INIT` first. Strides are bytes; 0 means packed.
 *
 * Query token i of sequence b is at `b * batch_stride + i * token_stride` of each tensor when `cu_q_lens` is NULL,
 * and at `(cu_q_lens[b] + i) * token_stride` when it is not: batch strides are then unused, and token strides are checked
 * for `batch * q_len` tokens, because the host does not look into `cu_q_lens`.
 */
typedef struct snapmla_decode_params {
  /** `sizeof(struct snapmla_decode_params)`. */
  uint32_t struct_size;
  /** 0, or any of `SNAPMLA_DECODE_CAUSAL` and `SNAPMLA_DECODE_BATCH_INVARIANT`. */
  uint32_t flags;
  /** Which layer of the cache. */
  int32_t layer;
  /** Sequences; 0 is legal and does nothing. */
  uint32_t batch;
  /** Query tokens a sequence, at least 1; with `cu_q_lens`, at least as many as any sequence has. */
  uint32_t q_len;
  /** Heads, 1 to 128. */
  uint32_t num_heads;
  /** Factor on the logits, 1/sqrt(d) with the model's own d and any RoPE scaling folded in. Must be finite. */
  float softmax_scale;
  /**
   * BF16, F16 or F32 for raw queries, which the call quantises itself; `SNAPMLA_DTYPE_QUANTISED` for the output
   * of `snapmla_q_quant`.
   */
  snapmla_dtype q_dtype;
  /** Absorbed queries, [tokens][heads][512]. */
  const void *q_content;
  /** Bytes between sequences. */
  int64_t q_content_batch_stride;
  /** Bytes between query tokens. */
  int64_t q_content_token_stride;
  /** Bytes between heads. */
  int64_t q_content_head_stride;
  /** Positional queries, [tokens][heads][64]. */
  const void *q_rope;
  /** Bytes between sequences. */
  int64_t q_rope_batch_stride;
  /** Bytes between query tokens. */
  int64_t q_rope_token_stride;
  /** Bytes between heads. */
  int64_t q_rope_head_stride;
  /** Scales, [tokens][heads], when the queries are quantised; NULL otherwise. */
  const float *q_scale;
  /** Bytes between sequences. */
  int64_t q_scale_batch_stride;
  /** Bytes between query tokens. */
  int64_t q_scale_token_stride;
  /** Bytes between heads. */
  int64_t q_scale_head_stride;
  /**
   * Prefix sums of the query lengths, [batch + 1], for ragged batches; NULL when every sequence has `q_len`. The
   * first may be more than 0, as in the middle of a longer array: it counts rows of the tensors that are passed over.
   */
  const int32_t *cu_q_lens;
  /** Cached tokens of each sequence, [batch], the new ones included. 0 is legal, and less counts as 0. */
  const int32_t *seq_lens;
  /** Page ids, [batch][max_pages]. Entries past a sequence's end are never looked at. NULL when `slots` is given. */
  const int32_t *block_table;
  /** Bytes between rows of `block_table`; 0 means `4 * max_pages`. */
  int64_t block_table_stride;
  /** Columns of `block_table`. A sequence is cut at `max_pages * page_size` tokens. 0 when `slots` is given. */
  uint32_t max_pages;
  /**
   * Bound that the caller knows on `seq_lens`, for the shape of the launch; 0 means `max_pages * page_size`, or
   * `max_slots`. A longer sequence is cut there.
   */
  uint32_t max_seq_len;
  /** Element type of `out`: BF16, F16 or F32. */
  snapmla_dtype out_dtype;
  /** 0. */
  uint32_t reserved;
  /** Out: attention output in the latent space, [tokens][heads][512]. Zeros for a row that attends to nothing. */
  void *out;
  /** Bytes between sequences. */
  int64_t out_batch_stride;
  /** Bytes between query tokens. */
  int64_t out_token_stride;
  /** Bytes between heads. */
  int64_t out_head_stride;
  /** Out: natural log-sum-exp of the logits, [tokens][heads]; -inf for a row that attends to nothing. May be NULL. */
  float *lse;
  /** Bytes between sequences. */
  int64_t lse_batch_stride;
  /** Bytes between query tokens. */
  int64_t lse_token_stride;
  /** Bytes between heads. */
  int64_t lse_head_stride;
  /**
   * Scratch, 256-byte aligned, host or device memory as the backend is; contents never matter between calls. One
   * workspace serves one call at a time: calls on two streams at once need two. NULL where the size is 0.
   */
  void *workspace;
  /** Bytes at `workspace`. */
  uint64_t workspace_size;
  /**
   * Slots, [batch][max_slots], in place of `block_table`: token t of sequence b is the record at `slots[b][t]`,
   * `page * page_size + offset`. For tokens that fill no whole pages: cells of an engine without pages, tokens
   * that a sparse attention has chosen. Entries past a sequence's end are never looked at; a slot may stand in
   * any number of rows. NULL for `block_table`. Ask `snapmla_supports` whether the backend has it.
   */
  const int64_t *slots;
  /** Bytes between rows of `slots`; 0 means `8 * max_slots`. */
  int64_t slots_stride;
  /** Columns of `slots`. A sequence is cut there. 0 when `slots` is NULL. */
  uint32_t max_slots;
  /** 0. */
  uint32_t reserved_slots;
} snapmla_decode_params;

/**
 * Cached tokens to read back. Set it with `SNAPMLA_FETCH_PARAMS_INIT` first. Strides are bytes; 0 means packed.
 *
 * Two ways of naming them. With `slots`: output row i is the record at `slots[i]`. With `block_table`: sequence b
 * gives the `cu_tokens[b + 1] - cu_tokens[b]` tokens from `starts[b]` on, in output rows from `cu_tokens[b]` on.
 */
typedef struct snapmla_fetch_params {
  /** `sizeof(struct snapmla_fetch_params)`. */
  uint32_t struct_size;
  /** 0. */
  uint32_t flags;
  /** Which layer of the cache. */
  int32_t layer;
  /** Element type of `content` and `rope`: BF16, F16 or F32. */
  snapmla_dtype dtype;
  /** Output rows; with `block_table`, at least `cu_tokens[batch]`: rows past that are not written. */
  int64_t num_tokens;
  /** Slots, [num_tokens]; a negative one leaves its row unwritten. NULL when `block_table` is given. */
  const int64_t *slots;
  /** Page ids, [batch][max_pages]. NULL when `slots` is given. */
  const int32_t *block_table;
  /** Bytes between rows of `block_table`; 0 means `4 * max_pages`. */
  int64_t block_table_stride;
  /** Columns of `block_table`. */
  uint32_t max_pages;
  /** Sequences of `block_table`. */
  uint32_t batch;
  /** First token of each sequence, [batch]; NULL means 0 for all. */
  const int32_t *starts;
  /** Prefix sums of the token counts, [batch + 1]. */
  const int32_t *cu_tokens;
  /** Out: latents, [num_tokens][512]; NULL to skip them. */
  void *content;
  /** Bytes from a token's content to the next one's. */
  int64_t content_stride;
  /** Out: positional keys, [num_tokens][64]; NULL to skip them. */
  void *rope;
  /** Bytes from a token's rope to the next one's. */
  int64_t rope_stride;
} snapmla_fetch_params;

/** Partial results to combine. Set it with `SNAPMLA_MERGE_PARAMS_INIT` first. Strides are bytes; 0 means packed. */
typedef struct snapmla_merge_params {
  /** `sizeof(struct snapmla_merge_params)`. */
  uint32_t struct_size;
  /** 0. */
  uint32_t flags;
  /** Partials a row, at least 1. */
  uint32_t num_parts;
  /** Heads, at least 1. */
  uint32_t num_heads;
  /** Query tokens; 0 is legal and does nothing. */
  int64_t num_tokens;
  /** Element type of `parts`: BF16, F16 or F32. */
  snapmla_dtype parts_dtype;
  /** Element type of `out`: BF16, F16 or F32. */
  snapmla_dtype out_dtype;
  /** Outputs of the parts, [num_parts][num_tokens][num_heads][512]. */
  const void *parts;
  /** Bytes between parts. */
  int64_t parts_part_stride;
  /** Bytes between tokens. */
  int64_t parts_token_stride;
  /** Bytes between heads. */
  int64_t parts_head_stride;
  /**
   * Natural log-sum-exps of the parts, [num_parts][num_tokens][num_heads]; -inf (or +inf, as some kernels write
   * it) marks a part that attended to nothing, whose output is then not used.
   */
  const float *parts_lse;
  /** Bytes between parts. */
  int64_t parts_lse_part_stride;
  /** Bytes between tokens. */
  int64_t parts_lse_token_stride;
  /** Bytes between heads. */
  int64_t parts_lse_head_stride;
  /** Out: [num_tokens][num_heads][512]. */
  void *out;
  /** Bytes between tokens. */
  int64_t out_token_stride;
  /** Bytes between heads. */
  int64_t out_head_stride;
  /** Out: natural log-sum-exp, [num_tokens][num_heads]; may be NULL. */
  float *lse;
  /** Bytes between tokens. */
  int64_t lse_token_stride;
  /** Bytes between heads. */
  int64_t lse_head_stride;
} snapmla_merge_params;

/** Done. */
#define SNAPMLA_STATUS_OK 0

/** An argument is wrong. The message names it, with its value and the value wanted. */
#define SNAPMLA_STATUS_INVALID_ARGUMENT 1

/** The request is legal, but this backend or this version cannot serve it. */
#define SNAPMLA_STATUS_UNSUPPORTED 2

/** The backend is not there: no driver, no device, or a device of the wrong kind. */
#define SNAPMLA_STATUS_UNAVAILABLE 3

/** The caller was built against a newer header and asks for something this library lacks. */
#define SNAPMLA_STATUS_VERSION_MISMATCH 4

/** The workspace is smaller than `snapmla_decode_workspace_size` says for this call. */
#define SNAPMLA_STATUS_WORKSPACE_TOO_SMALL 5

/** A handle is NULL where it must not be, already destroyed, or not one of this library's. */
#define SNAPMLA_STATUS_INVALID_HANDLE 6

/** Host or device memory ran out. */
#define SNAPMLA_STATUS_OUT_OF_MEMORY 7

/** The CUDA driver reported an error; the message carries its name. */
#define SNAPMLA_STATUS_CUDA_ERROR 8

/** A fault of the library itself. Nothing is known about the outputs. */
#define SNAPMLA_STATUS_INTERNAL 9

/** CUDA where a Hopper device and its driver are found, the CPU otherwise. */
#define SNAPMLA_BACKEND_AUTO 0

/** Host memory, host threads. */
#define SNAPMLA_BACKEND_CPU 1

/** NVIDIA Hopper (compute capability 9.0). */
#define SNAPMLA_BACKEND_CUDA 2

/** bfloat16. */
#define SNAPMLA_DTYPE_BF16 1

/** IEEE half precision. */
#define SNAPMLA_DTYPE_F16 2

/** IEEE single precision. */
#define SNAPMLA_DTYPE_F32 3

/** Quantised queries, as `snapmla_q_quant` writes them: content E4M3, rope BF16, scale F32. */
#define SNAPMLA_DTYPE_QUANTISED 4

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The library's `SNAPMLA_ABI_VERSION`. A caller built against an equal or smaller one is served in full; a newer
 * caller is served as long as it asks for nothing that this library lacks. Never fails.
 */
uint32_t snapmla_abi_version(void);

/** The library's version, "major.minor.patch". A static string: never freed. Never fails. */
const char *snapmla_version(void);

/**
 * What a status means, in a few English words; for a number that is no status, "unknown status". A static string:
 * never freed. Never fails.
 */
const char *snapmla_status_string(snapmla_status status);

/**
 * What was wrong with the calling thread's last failing call: the parameter's name, its value and the value
 * wanted. Never NULL; "" when no call of this thread has failed. A call that succeeds leaves the message as it
 * was, so look at the status first. The string is the library's: one place for each thread, valid until the thread's
 * end, which the thread's next failing call writes over. Never fails.
 */
const char *snapmla_last_error_message(void);

/**
 * Whether a backend can be opened here: `SNAPMLA_STATUS_OK`, or `SNAPMLA_STATUS_UNAVAILABLE` with the reason as
 * message.
 *
 * `SNAPMLA_BACKEND_CPU` and `SNAPMLA_BACKEND_AUTO` always can. `SNAPMLA_BACKEND_CUDA` is opened for a moment on
 * device `device_ordinal` (from 0; ignored otherwise), which may block for as long as `snapmla_context_create`.
 *
 * Keeps nothing. Any thread.
 */
snapmla_status snapmla_backend_available(snapmla_backend backend,
                                         int32_t device_ordinal);

/**
 * Opens a backend.
 *
 * `params`: read during the call only; must not be NULL. At most 4096 `cpu_threads`.
 *
 * `out`: receives the handle, which is the caller's to pass to `snapmla_context_destroy`; must not be NULL. On
 * failure `*out` is NULL.
 *
 * Blocks: loads the kernels or starts the threads. Allocates host memory, and on CUDA what the driver needs for a
 * module; the device's primary context is retained, and the calling thread's current context is left as it was.
 * With `SNAPMLA_BACKEND_AUTO` a CUDA backend that cannot be opened is no failure, the CPU takes its place;
 * `snapmla_context_describe` says which it was. Call it before any stream capture begins. Any thread.
 *
 * A context is for the process that opened it. In a child made by fork(), where its threads are not, it may be destroyed
 * but not used: the CPU backend answers `SNAPMLA_STATUS_INVALID_HANDLE`, and CUDA serves no child at all. A child may
 * open CPU contexts of its own.
 *
 * The CPU backend takes the best instruction set that the machine has, up to the one that the environment variable
 * `SNAPMLA_MAX_CPU_ISA` names: `portable`, `avx2`, `avx512` or `avx512_bf16`. Decode gives the same bits on machines
 * that use the same one.
 */
snapmla_status snapmla_context_create(const struct snapmla_context_params *params,
                                      struct snapmla_context **out);

/**
 * Destroys a context. NULL is fine and does nothing.
 *
 * Its caches stay valid as handles, to be destroyed before or after, but a call needs both. Calls inside it on
 * other threads finish undisturbed. Work that it has launched must have finished on its streams: kernels may be
 * unloaded. A destroyed context that is used or destroyed again gives `SNAPMLA_STATUS_INVALID_HANDLE`. Any thread.
 */
snapmla_status snapmla_context_destroy(struct snapmla_context *context);

/**
 * Says which backend a context has, on what.
 *
 * `info`: the caller's, with `struct_size` set; must not be NULL. Everything else in it is written, but nothing
 * past `struct_size`; fields that this library is too old to know stay as they were. Untouched on failure.
 *
 * Never blocks, allocates or synchronises. Any thread.
 */
snapmla_status snapmla_context_describe(const struct snapmla_context *context,
                                        struct snapmla_context_info *info);

/**
 * Whether a decode of this shape can be served: `SNAPMLA_STATUS_OK`, or `SNAPMLA_STATUS_UNSUPPORTED` with the
 * reason as message. For an engine that chooses between attention backends while it starts.
 *
 * `query`: read during the call only; must not be NULL.
 *
 * Never blocks, allocates (but for the message), launches or synchronises. Any thread.
 */
snapmla_status snapmla_supports(const struct snapmla_context *context,
                                const struct snapmla_support_query *query);

/**
 * Bytes of memory that a cache of this geometry needs: from the first byte of its first page to the last byte of
 * its last one. `memory` and `memory_size` are not looked at. A pure function; packed, it is `num_layers *
 * num_pages * page_size * 644`.
 *
 * `params`: read during the call only; must not be NULL. `size`: receives bytes; must not be NULL; untouched on
 * failure.
 *
 * Never blocks, allocates (but for a failure's message), launches or synchronises. Any thread.
 */
snapmla_status snapmla_cache_size(const struct snapmla_cache_params *params,
                                  uint64_t *size);

/**
 * Makes a cache of the caller's memory and zero-fills its pages (no byte between them) on `stream`, unless told
 * `SNAPMLA_CACHE_KEEP_CONTENTS`.
 *
 * `params`: read during the call only; must not be NULL. The memory in it stays the caller's: it must outlive the
 * cache and is never freed by the library. It may be read and written by the caller at any time in stream order: a
 * page is one plain block of `644 * page_size` bytes that may be copied, swapped out or sent as it is.
 *
 * `stream`: orders the zero-fill on CUDA, NULL being the default stream; must be NULL on the CPU backend.
 *
 * `out`: receives the handle, which is the caller's to pass to `snapmla_cache_destroy`; must not be NULL. On
 * failure `*out` is NULL. The cache belongs to `context` and is refused in calls with another one.
 *
 * Allocates a few bytes of host memory, never device memory. On CUDA it asks the driver about `memory` and does
 * not wait for the zero-fill; on the CPU backend the pages are filled when it returns. Any thread.
 */
snapmla_status snapmla_cache_init(struct snapmla_context *context,
                                  const struct snapmla_cache_params *params,
                                  snapmla_stream stream,
                                  struct snapmla_cache **out);

/**
 * Destroys a cache, before or after its context. NULL is fine and does nothing.
 *
 * The memory is not touched, so work in flight on streams is not disturbed, nor are calls inside it on other
 * threads. A destroyed cache that is used or destroyed again gives `SNAPMLA_STATUS_INVALID_HANDLE`. Any thread.
 */
snapmla_status snapmla_cache_destroy(struct snapmla_cache *cache);

/**
 * Quantises new tokens and writes their records into the cache, in one launch. The bytes are the same on every
 * backend.
 *
 * `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
 * backend and device memory on CUDA, and must stay as they are until the stream has passed this call: `content`
 * [num_tokens][512] and `rope` [num_tokens][64] of `dtype`, `slots` [num_tokens] int64. None of them may be NULL
 * unless `num_tokens` is 0. A token whose slot is negative is skipped. A slot past the layer's `num_pages *
 * page_size` is a mistake: the CPU backend refuses the call and says which it is; CUDA, which cannot report from a
 * launch, skips the token. No slot may occur twice in one call: which token it gets is not defined.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread.
 */
snapmla_status snapmla_k_append(struct snapmla_context *context,
                                struct snapmla_cache *cache,
                                const struct snapmla_k_append_params *params,
                                snapmla_stream stream);

/**
 * Quantises absorbed queries, each (token, head) with its own scale, in one launch. The bytes are the same on
 * every backend. `snapmla_decode` takes raw queries as well and then does this itself; this call is for queries
 * that several decodes share.
 *
 * `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
 * backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in,
 * `content` [num_tokens][num_heads][512] and `rope` [num_tokens][num_heads][64] of `dtype`; out, packed,
 * `q_content` [num_tokens][num_heads][512] E4M3 bytes, `q_rope` [num_tokens][num_heads][64] BF16 and `q_scale`
 * [num_tokens][num_heads] F32. None of them may be NULL unless `num_tokens` is 0.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread.
 */
snapmla_status snapmla_q_quant(struct snapmla_context *context,
                               const struct snapmla_q_quant_params *params,
                               snapmla_stream stream);

/**
 * Copies records from slot to slot of one cache, in one layer or all, in one launch: for copy on write of a partly
 * filled page, beam search and defragmentation. Whole pages need no call: each is one plain block of bytes.
 *
 * `params`: read during the call only; must not be NULL. `src_slots` and `dst_slots`, [num_records] int64, are the
 * caller's, host memory on the CPU backend and device memory on CUDA, and must stay as they are until the stream
 * has passed this call. Neither may be NULL unless `num_records` is 0. A pair with a negative slot is skipped. A
 * slot past the layer's `num_pages * page_size` is a mistake: the CPU backend refuses the call and says which it
 * is; CUDA, which cannot report from a launch, skips the pair.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread.
 */
snapmla_status snapmla_records_copy(struct snapmla_context *context,
                                    struct snapmla_cache *cache,
                                    const struct snapmla_records_copy_params *params,
                                    snapmla_stream stream);

/**
 * Bytes of workspace that serve every decode call within these limits, on this context. A pure function of the
 * two; it may be 0.
 *
 * `limits`: read during the call only; must not be NULL; every limit at least 1. `size`: receives bytes; must not
 * be NULL; untouched on failure.
 *
 * Never blocks, allocates (but for a failure's message), launches or synchronises. Any thread.
 */
snapmla_status snapmla_decode_workspace_size(const struct snapmla_context *context,
                                             const struct snapmla_decode_limits *limits,
                                             uint64_t *size);

/**
 * FP8 attention of new queries over cached tokens: output in the latent space, and log-sum-exp.
 *
 * `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
 * backend and device memory on CUDA, and must stay as they are until the stream has passed this call. With T the
 * sum of the query lengths (`batch * q_len`, or `cu_q_lens[batch]` when ragged) they are: in, `q_content`
 * [T][num_heads][512] and `q_rope` [T][num_heads][64] of `q_dtype`, `q_scale` [T][num_heads] F32, `cu_q_lens`
 * [batch + 1], `seq_lens` [batch] and `block_table` [batch][max_pages] int32 or `slots` [batch][max_slots] int64;
 * out, `out` [T][num_heads][512] of `out_dtype` and `lse` [T][num_heads] F32.
 *
 * May be NULL: `lse`; `cu_q_lens`, when every sequence has `q_len`; `workspace`, when the size is 0; `block_table`
 * when `max_pages` is 0; all when `batch` is 0. `q_scale` must be NULL for raw queries and must not for quantised
 * ones. Quantised `q_content` and `q_rope` are 16-byte aligned, in all their strides as well.
 *
 * Where a sequence's tokens lie is said by `block_table`, or record by record by `slots`; one of the two must be
 * NULL. Both give the same bits for the same tokens in the same order. CUDA has no decode over `slots` yet and
 * answers `SNAPMLA_STATUS_UNSUPPORTED`.
 *
 * The queries of a sequence are its last tokens: append their keys first, and count them in `seq_lens`. Lengths
 * and page ids are read on the device when the launch runs, so that a captured graph may be replayed with others;
 * the shape of the launch depends on nothing but `params`. A page id or slot outside the cache (a negative slot too)
 * within a sequence's length is a mistake, which the CPU backend refuses with the entry's place.
 *
 * Deterministic: the same call gives the same bits; with `SNAPMLA_DECODE_BATCH_INVARIANT` so does the same sequence in
 * any call. A NaN or infinity in a record or query spoils only the rows
 * that attend to it.
 *
 * `workspace`: at least what `snapmla_decode_workspace_size` says for this call or for larger limits; its contents
 * need no initialisation and mean nothing afterwards.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread, but one workspace serves one call at a time.
 */
snapmla_status snapmla_decode(struct snapmla_context *context,
                              const struct snapmla_cache *cache,
                              const struct snapmla_decode_params *params,
                              snapmla_stream stream);

/**
 * Reads cached tokens back at high precision, in one launch: for prefill of a further chunk, or a shared prefix.
 * The bytes are the same on every backend.
 *
 * `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
 * backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in, `slots`
 * [num_tokens] int64, or `block_table` [batch][max_pages], `starts` [batch] and `cu_tokens` [batch + 1] int32;
 * out, `content` [num_tokens][512] and `rope` [num_tokens][64] of `dtype`.
 *
 * May be NULL: one of `slots` and `block_table`, and one must be; `starts`, for 0; one of `content` and `rope`,
 * which is then skipped; all when `num_tokens` is 0.
 *
 * A token outside the cache is a mistake: a slot past the layer's `num_pages * page_size`, a page that is none, a
 * token past `max_pages * page_size`. The CPU backend refuses the call and says which it is. CUDA, which cannot
 * report from a launch, leaves the row of such a slot unwritten and fills the row of such a page or token with NaN.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread.
 */
snapmla_status snapmla_fetch_dequant(struct snapmla_context *context,
                                     const struct snapmla_cache *cache,
                                     const struct snapmla_fetch_params *params,
                                     snapmla_stream stream);

/**
 * Combines partial attention results of the same queries over disjoint tokens, in one launch: for caches spread
 * over devices or stages, or a prefix computed elsewhere.
 *
 * `params`: read during the call only; must not be NULL. Its arrays are the caller's, host memory on the CPU
 * backend and device memory on CUDA, and must stay as they are until the stream has passed this call: in, `parts`
 * [num_parts][num_tokens][num_heads][512] of `parts_dtype` and `parts_lse` [num_parts][num_tokens][num_heads] F32;
 * out, `out` [num_tokens][num_heads][512] of `out_dtype` and `lse` [num_tokens][num_heads] F32, disjoint from the
 * parts. A row of which no part attended to anything gets zeros and -inf. Only `lse` may be NULL, and all when
 * `num_tokens` is 0.
 *
 * `stream`: the stream to launch on; must be NULL on the CPU backend, which is done when it returns.
 *
 * Never blocks (on CUDA), allocates, synchronises or reads device memory on the host: it may be captured in a
 * graph. Any thread.
 */
snapmla_status snapmla_merge(struct snapmla_context *context,
                             const struct snapmla_merge_params *params,
                             snapmla_stream stream);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/** Initial value of a struct snapmla_context_params. */
#define SNAPMLA_CONTEXT_PARAMS_INIT \
  {sizeof(struct snapmla_context_params), 0, 0, 0, 0}

/** Initial value of a struct snapmla_context_info. */
#define SNAPMLA_CONTEXT_INFO_INIT \
  {sizeof(struct snapmla_context_info), 0, 0, 0, {0}}

/** Initial value of a struct snapmla_cache_params. */
#define SNAPMLA_CACHE_PARAMS_INIT \
  {sizeof(struct snapmla_cache_params), 0, 64, 1, 0, 0, 0, NULL, 0}

/** Initial value of a struct snapmla_k_append_params. */
#define SNAPMLA_K_APPEND_PARAMS_INIT \
  {sizeof(struct snapmla_k_append_params), 0, 0, SNAPMLA_DTYPE_BF16, 0, NULL, 0, NULL, 0, NULL}

/** Initial value of a struct snapmla_q_quant_params. */
#define SNAPMLA_Q_QUANT_PARAMS_INIT \
  {sizeof(struct snapmla_q_quant_params), 0, SNAPMLA_DTYPE_BF16, 0, 0, NULL, 0, 0, NULL, 0, 0, \
   NULL, NULL, NULL}

/** Initial value of a struct snapmla_records_copy_params. */
#define SNAPMLA_RECORDS_COPY_PARAMS_INIT \
  {sizeof(struct snapmla_records_copy_params), 0, 0, 0, 0, NULL, NULL}

/** Initial value of a struct snapmla_decode_limits. */
#define SNAPMLA_DECODE_LIMITS_INIT \
  {sizeof(struct snapmla_decode_limits), 0, 0, 1, SNAPMLA_MAX_HEADS, 0}

/** Initial value of a struct snapmla_decode_params. */
#define SNAPMLA_DECODE_PARAMS_INIT \
  {sizeof(struct snapmla_decode_params), 0, 0, 0, 1, 0, 0.0f, SNAPMLA_DTYPE_BF16, NULL, 0, 0, 0, \
   NULL, 0, 0, 0, NULL, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0, SNAPMLA_DTYPE_BF16, 0, NULL, 0, 0, 0, \
   NULL, 0, 0, 0, NULL, 0, NULL, 0, 0, 0}

/** Initial value of a struct snapmla_fetch_params. */
#define SNAPMLA_FETCH_PARAMS_INIT \
  {sizeof(struct snapmla_fetch_params), 0, 0, SNAPMLA_DTYPE_BF16, 0, NULL, NULL, 0, 0, 0, NULL, \
   NULL, NULL, 0, NULL, 0}

/** Initial value of a struct snapmla_merge_params. */
#define SNAPMLA_MERGE_PARAMS_INIT \
  {sizeof(struct snapmla_merge_params), 0, 0, 0, 0, SNAPMLA_DTYPE_BF16, SNAPMLA_DTYPE_BF16, NULL, \
   0, 0, 0, NULL, 0, 0, 0, NULL, 0, 0, NULL, 0, 0}

/** Initial value of a struct snapmla_support_query. */
#define SNAPMLA_SUPPORT_QUERY_INIT \
  {sizeof(struct snapmla_support_query), 0, 64, SNAPMLA_MAX_HEADS, 1, SNAPMLA_CONTENT_DIM, \
   SNAPMLA_ROPE_DIM, SNAPMLA_DTYPE_BF16, SNAPMLA_DTYPE_BF16, 0}

#endif  /* SNAPMLA_H */
