//! Every constant and struct of the C ABI, in the plain grammar that both cbindgen and ctest2 read.
//!
//! Values never change and fields are only ever appended: see "Compatibility" in the README.

/// Version of the binary interface. A library serves every caller built against an equal or older one.
pub const SNAPMLA_ABI_VERSION: u32 = 1;

/// Numbers in a latent row: the content part of K, and all of V.
pub const SNAPMLA_CONTENT_DIM: u32 = 512;
/// Numbers in a decoupled positional (RoPE) row.
pub const SNAPMLA_ROPE_DIM: u32 = 64;
/// Bytes that the cache keeps of one token: 512 E4M3, 64 BF16, one F32.
pub const SNAPMLA_RECORD_BYTES: u32 = 644;
/// Most query heads in one call.
pub const SNAPMLA_MAX_HEADS: u32 = 128;

/// Result of every fallible function. Values are never renumbered; a newer library may add some.
pub type snapmla_status = i32;
/// Done.
pub const SNAPMLA_STATUS_OK: snapmla_status = 0;
/// An argument is wrong. The message names it, with its value and the value wanted.
pub const SNAPMLA_STATUS_INVALID_ARGUMENT: snapmla_status = 1;
/// The request is legal, but this backend or this version cannot serve it.
pub const SNAPMLA_STATUS_UNSUPPORTED: snapmla_status = 2;
/// The backend is not there: no driver, no device, or a device of the wrong kind.
pub const SNAPMLA_STATUS_UNAVAILABLE: snapmla_status = 3;
/// The caller was built against a newer header and asks for something this library lacks.
pub const SNAPMLA_STATUS_VERSION_MISMATCH: snapmla_status = 4;
/// The workspace is smaller than `snapmla_decode_workspace_size` says for this call.
pub const SNAPMLA_STATUS_WORKSPACE_TOO_SMALL: snapmla_status = 5;
/// A handle is NULL where it must not be, already destroyed, or not one of this library's.
pub const SNAPMLA_STATUS_INVALID_HANDLE: snapmla_status = 6;
/// Host or device memory ran out.
pub const SNAPMLA_STATUS_OUT_OF_MEMORY: snapmla_status = 7;
/// The CUDA driver reported an error; the message carries its name.
pub const SNAPMLA_STATUS_CUDA_ERROR: snapmla_status = 8;
/// A fault of the library itself. Nothing is known about the outputs.
pub const SNAPMLA_STATUS_INTERNAL: snapmla_status = 9;

/// Which implementation a context uses.
pub type snapmla_backend = u32;
/// CUDA where a Hopper device and its driver are found, the CPU otherwise.
pub const SNAPMLA_BACKEND_AUTO: snapmla_backend = 0;
/// Host memory, host threads.
pub const SNAPMLA_BACKEND_CPU: snapmla_backend = 1;
/// NVIDIA Hopper (compute capability 9.0).
pub const SNAPMLA_BACKEND_CUDA: snapmla_backend = 2;

/// Element type of a caller's tensor.
pub type snapmla_dtype = u32;
/// bfloat16.
pub const SNAPMLA_DTYPE_BF16: snapmla_dtype = 1;
/// IEEE half precision.
pub const SNAPMLA_DTYPE_F16: snapmla_dtype = 2;
/// IEEE single precision.
pub const SNAPMLA_DTYPE_F32: snapmla_dtype = 3;
/// Quantised queries, as `snapmla_q_quant` writes them: content E4M3, rope BF16, scale F32.
pub const SNAPMLA_DTYPE_QUANTISED: snapmla_dtype = 4;

/// `snapmla_context_params.flags`: the CUDA backend asks the driver about every pointer of every call and refuses
/// those the device cannot reach. For bringing an engine up: it costs about a microsecond a call.
pub const SNAPMLA_CONTEXT_CHECK_POINTERS: u32 = 1;

/// `snapmla_cache_params.flags`: keep what the memory holds (pages received from elsewhere) instead of zero-filling it.
pub const SNAPMLA_CACHE_KEEP_CONTENTS: u32 = 1;

/// `snapmla_decode_params.flags`: query i of q_len attends only to the first `seq_len - q_len + i + 1` tokens.
pub const SNAPMLA_DECODE_CAUSAL: u32 = 1;

/// `snapmla_decode_params.flags`: the bits of a sequence's rows depend on its own queries, records and length, and on
/// the call's `num_heads`, `q_len`, `softmax_scale`, types and flags, but on nothing else: not on `batch`, the other
/// sequences, the sequence's place among them, page ids or the GPU's number of multiprocessors. The CPU backend always
/// works so. CUDA cuts a sequence by its length alone, which costs time where sequences are few and workspace where
/// they are many: `snapmla_decode_limits.flags` must say so too.
pub const SNAPMLA_DECODE_BATCH_INVARIANT: u32 = 2;

/// `layer` value that means every layer, where a function says that it takes it.
pub const SNAPMLA_ALL_LAYERS: i32 = -1;

/// What `snapmla_context_create` makes. Set it with `SNAPMLA_CONTEXT_PARAMS_INIT` first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_context_params {
    /// `sizeof(struct snapmla_context_params)`.
    pub struct_size: u32,
    /// 0 or `SNAPMLA_CONTEXT_CHECK_POINTERS`.
    pub flags: u32,
    /// `SNAPMLA_BACKEND_AUTO`, `_CPU` or `_CUDA`.
    pub backend: snapmla_backend,
    /// CUDA device ordinal, from 0. The CPU backend ignores it.
    pub device_ordinal: i32,
    /// Threads of the CPU backend; 0 means one for each core the process may use. CUDA ignores it.
    pub cpu_threads: u32,
}

/// What `snapmla_context_describe` fills in. Set it with `SNAPMLA_CONTEXT_INFO_INIT` first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_context_info {
    /// `sizeof(struct snapmla_context_info)`; no byte past it is written.
    pub struct_size: u32,
    /// `SNAPMLA_BACKEND_CPU` or `SNAPMLA_BACKEND_CUDA`.
    pub backend: snapmla_backend,
    /// CUDA device ordinal; -1 on the CPU backend.
    pub device_ordinal: i32,
    /// Worker threads on the CPU backend, streaming multiprocessors on CUDA.
    pub parallelism: u32,
    /// NUL-terminated: the device's name, or the instruction set in use on the CPU ("avx512_bf16", "avx512", "avx2",
    /// "portable").
    pub name: [::std::os::raw::c_char; 128],
}

/// Where a paged latent cache lives. Set it with `SNAPMLA_CACHE_PARAMS_INIT` first.
///
/// Page p of layer l is the `644 * page_size` bytes from `memory + l * layer_stride + p * page_stride`. Pages must
/// not overlap: either layers lie outside pages (`layer_stride` past the last page) or inside (`page_stride` past
/// the last layer).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_cache_params {
    /// `sizeof(struct snapmla_cache_params)`.
    pub struct_size: u32,
    /// 0 or `SNAPMLA_CACHE_KEEP_CONTENTS`.
    pub flags: u32,
    /// Tokens a page: a multiple of 8 from 8 to 1024. 64 is the fast path.
    pub page_size: u32,
    /// Layers, at least 1.
    pub num_layers: u32,
    /// Pages a layer, at least 1 and at most 2147483647.
    pub num_pages: i64,
    /// Bytes from a page to the next: a multiple of 16, at least `644 * page_size`. 0 means just that.
    pub page_stride: i64,
    /// Bytes from a layer to the next: a multiple of 16. 0 means `num_pages * page_stride`.
    pub layer_stride: i64,
    /// The caller's memory, 16-byte aligned: host memory for the CPU backend, device memory for CUDA. The caller
    /// keeps it alive until `snapmla_cache_destroy` and frees it.
    pub memory: *mut ::std::os::raw::c_void,
    /// Bytes at `memory`, at least what `snapmla_cache_size` says.
    pub memory_size: u64,
}

/// New tokens for the cache. Set it with `SNAPMLA_K_APPEND_PARAMS_INIT` first. Strides are bytes; 0 means packed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_k_append_params {
    /// `sizeof(struct snapmla_k_append_params)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Which layer of the cache.
    pub layer: i32,
    /// Element type of `content` and `rope`: BF16, F16 or F32.
    pub dtype: snapmla_dtype,
    /// Tokens; 0 is legal and does nothing.
    pub num_tokens: i64,
    /// Latents c_KV, [num_tokens][512].
    pub content: *const ::std::os::raw::c_void,
    /// Bytes from a token's content to the next one's.
    pub content_stride: i64,
    /// Positional keys, [num_tokens][64], after RoPE.
    pub rope: *const ::std::os::raw::c_void,
    /// Bytes from a token's rope to the next one's.
    pub rope_stride: i64,
    /// Where each token goes, [num_tokens]: `page * page_size + offset`; negative means skip.
    pub slots: *const i64,
}

/// Queries to quantise. Set it with `SNAPMLA_Q_QUANT_PARAMS_INIT` first. Strides are bytes; 0 means packed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_q_quant_params {
    /// `sizeof(struct snapmla_q_quant_params)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Element type of `content` and `rope`: BF16, F16 or F32.
    pub dtype: snapmla_dtype,
    /// Heads, 1 to 128.
    pub num_heads: u32,
    /// Query tokens; 0 is legal and does nothing.
    pub num_tokens: i64,
    /// Absorbed queries, [num_tokens][num_heads][512].
    pub content: *const ::std::os::raw::c_void,
    /// Bytes between tokens of `content`.
    pub content_token_stride: i64,
    /// Bytes between heads of `content`.
    pub content_head_stride: i64,
    /// Positional queries, [num_tokens][num_heads][64], after RoPE.
    pub rope: *const ::std::os::raw::c_void,
    /// Bytes between tokens of `rope`.
    pub rope_token_stride: i64,
    /// Bytes between heads of `rope`.
    pub rope_head_stride: i64,
    /// Out: E4M3 content, [num_tokens][num_heads][512], packed, 16-byte aligned.
    pub q_content: *mut ::std::os::raw::c_void,
    /// Out: BF16 rope divided by the scale, [num_tokens][num_heads][64], packed, 16-byte aligned.
    pub q_rope: *mut ::std::os::raw::c_void,
    /// Out: F32 scale, [num_tokens][num_heads], packed.
    pub q_scale: *mut f32,
}

/// Records to copy. Set it with `SNAPMLA_RECORDS_COPY_PARAMS_INIT` first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_records_copy_params {
    /// `sizeof(struct snapmla_records_copy_params)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Which layer, or `SNAPMLA_ALL_LAYERS`.
    pub layer: i32,
    /// 0.
    pub reserved: u32,
    /// Pairs of slots; 0 is legal and does nothing.
    pub num_records: i64,
    /// Slots to read, [num_records]; negative means skip the pair.
    pub src_slots: *const i64,
    /// Slots to write, [num_records]; negative means skip the pair. No slot may be both read and written in one
    /// call, nor written twice: the order of the copies is not defined.
    pub dst_slots: *const i64,
}

/// Upper bounds of the decode calls that will share a workspace. Set it with `SNAPMLA_DECODE_LIMITS_INIT` first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_decode_limits {
    /// `sizeof(struct snapmla_decode_limits)`.
    pub struct_size: u32,
    /// 0, or `SNAPMLA_DECODE_BATCH_INVARIANT` where some of the calls have that flag.
    pub flags: u32,
    /// Most sequences in a call.
    pub max_batch: u32,
    /// Most query tokens of one sequence in a call.
    pub max_q_len: u32,
    /// Most heads in a call, 1 to 128.
    pub max_heads: u32,
    /// Most cached tokens of one sequence.
    pub max_seq_len: u32,
}

/// One attention call. Set it with `SNAPMLA_DECODE_PARAMS_INIT` first. Strides are bytes; 0 means packed.
///
/// Query token i of sequence b is at `b * batch_stride + i * token_stride` of each tensor when `cu_q_lens` is NULL,
/// and at `(cu_q_lens[b] + i) * token_stride` when it is not: batch strides are then unused, and token strides are checked
/// for `batch * q_len` tokens, because the host does not look into `cu_q_lens`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_decode_params {
    /// `sizeof(struct snapmla_decode_params)`.
    pub struct_size: u32,
    /// 0, or any of `SNAPMLA_DECODE_CAUSAL` and `SNAPMLA_DECODE_BATCH_INVARIANT`.
    pub flags: u32,
    /// Which layer of the cache.
    pub layer: i32,
    /// Sequences; 0 is legal and does nothing.
    pub batch: u32,
    /// Query tokens a sequence, at least 1; with `cu_q_lens`, at least as many as any sequence has.
    pub q_len: u32,
    /// Heads, 1 to 128.
    pub num_heads: u32,
    /// Factor on the logits, 1/sqrt(d) with the model's own d and any RoPE scaling folded in. Must be finite.
    pub softmax_scale: f32,
    /// BF16, F16 or F32 for raw queries, which the call quantises itself; `SNAPMLA_DTYPE_QUANTISED` for the output
    /// of `snapmla_q_quant`.
    pub q_dtype: snapmla_dtype,
    /// Absorbed queries, [tokens][heads][512].
    pub q_content: *const ::std::os::raw::c_void,
    /// Bytes between sequences.
    pub q_content_batch_stride: i64,
    /// Bytes between query tokens.
    pub q_content_token_stride: i64,
    /// Bytes between heads.
    pub q_content_head_stride: i64,
    /// Positional queries, [tokens][heads][64].
    pub q_rope: *const ::std::os::raw::c_void,
    /// Bytes between sequences.
    pub q_rope_batch_stride: i64,
    /// Bytes between query tokens.
    pub q_rope_token_stride: i64,
    /// Bytes between heads.
    pub q_rope_head_stride: i64,
    /// Scales, [tokens][heads], when the queries are quantised; NULL otherwise.
    pub q_scale: *const f32,
    /// Bytes between sequences.
    pub q_scale_batch_stride: i64,
    /// Bytes between query tokens.
    pub q_scale_token_stride: i64,
    /// Bytes between heads.
    pub q_scale_head_stride: i64,
    /// Prefix sums of the query lengths, [batch + 1], for ragged batches; NULL when every sequence has `q_len`. The
    /// first may be more than 0, as in the middle of a longer array: it counts rows of the tensors that are passed over.
    pub cu_q_lens: *const i32,
    /// Cached tokens of each sequence, [batch], the new ones included. 0 is legal, and less counts as 0.
    pub seq_lens: *const i32,
    /// Page ids, [batch][max_pages]. Entries past a sequence's end are never looked at. NULL when `slots` is given.
    pub block_table: *const i32,
    /// Bytes between rows of `block_table`; 0 means `4 * max_pages`.
    pub block_table_stride: i64,
    /// Columns of `block_table`. A sequence is cut at `max_pages * page_size` tokens. 0 when `slots` is given.
    pub max_pages: u32,
    /// Bound that the caller knows on `seq_lens`, for the shape of the launch; 0 means `max_pages * page_size`, or
    /// `max_slots`. A longer sequence is cut there.
    pub max_seq_len: u32,
    /// Element type of `out`: BF16, F16 or F32.
    pub out_dtype: snapmla_dtype,
    /// 0.
    pub reserved: u32,
    /// Out: attention output in the latent space, [tokens][heads][512]. Zeros for a row that attends to nothing.
    pub out: *mut ::std::os::raw::c_void,
    /// Bytes between sequences.
    pub out_batch_stride: i64,
    /// Bytes between query tokens.
    pub out_token_stride: i64,
    /// Bytes between heads.
    pub out_head_stride: i64,
    /// Out: natural log-sum-exp of the logits, [tokens][heads]; -inf for a row that attends to nothing. May be NULL.
    pub lse: *mut f32,
    /// Bytes between sequences.
    pub lse_batch_stride: i64,
    /// Bytes between query tokens.
    pub lse_token_stride: i64,
    /// Bytes between heads.
    pub lse_head_stride: i64,
    /// Scratch, 256-byte aligned, host or device memory as the backend is; contents never matter between calls. One
    /// workspace serves one call at a time: calls on two streams at once need two. NULL where the size is 0.
    pub workspace: *mut ::std::os::raw::c_void,
    /// Bytes at `workspace`.
    pub workspace_size: u64,
    /// Slots, [batch][max_slots], in place of `block_table`: token t of sequence b is the record at `slots[b][t]`,
    /// `page * page_size + offset`. For tokens that fill no whole pages: cells of an engine without pages, tokens
    /// that a sparse attention has chosen. Entries past a sequence's end are never looked at; a slot may stand in
    /// any number of rows. NULL for `block_table`. Ask `snapmla_supports` whether the backend has it.
    pub slots: *const i64,
    /// Bytes between rows of `slots`; 0 means `8 * max_slots`.
    pub slots_stride: i64,
    /// Columns of `slots`. A sequence is cut there. 0 when `slots` is NULL.
    pub max_slots: u32,
    /// 0.
    pub reserved_slots: u32,
}

/// Cached tokens to read back. Set it with `SNAPMLA_FETCH_PARAMS_INIT` first. Strides are bytes; 0 means packed.
///
/// Two ways of naming them. With `slots`: output row i is the record at `slots[i]`. With `block_table`: sequence b
/// gives the `cu_tokens[b + 1] - cu_tokens[b]` tokens from `starts[b]` on, in output rows from `cu_tokens[b]` on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_fetch_params {
    /// `sizeof(struct snapmla_fetch_params)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Which layer of the cache.
    pub layer: i32,
    /// Element type of `content` and `rope`: BF16, F16 or F32.
    pub dtype: snapmla_dtype,
    /// Output rows; with `block_table`, at least `cu_tokens[batch]`: rows past that are not written.
    pub num_tokens: i64,
    /// Slots, [num_tokens]; a negative one leaves its row unwritten. NULL when `block_table` is given.
    pub slots: *const i64,
    /// Page ids, [batch][max_pages]. NULL when `slots` is given.
    pub block_table: *const i32,
    /// Bytes between rows of `block_table`; 0 means `4 * max_pages`.
    pub block_table_stride: i64,
    /// Columns of `block_table`.
    pub max_pages: u32,
    /// Sequences of `block_table`.
    pub batch: u32,
    /// First token of each sequence, [batch]; NULL means 0 for all.
    pub starts: *const i32,
    /// Prefix sums of the token counts, [batch + 1].
    pub cu_tokens: *const i32,
    /// Out: latents, [num_tokens][512]; NULL to skip them.
    pub content: *mut ::std::os::raw::c_void,
    /// Bytes from a token's content to the next one's.
    pub content_stride: i64,
    /// Out: positional keys, [num_tokens][64]; NULL to skip them.
    pub rope: *mut ::std::os::raw::c_void,
    /// Bytes from a token's rope to the next one's.
    pub rope_stride: i64,
}

/// Partial results to combine. Set it with `SNAPMLA_MERGE_PARAMS_INIT` first. Strides are bytes; 0 means packed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_merge_params {
    /// `sizeof(struct snapmla_merge_params)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Partials a row, at least 1.
    pub num_parts: u32,
    /// Heads, at least 1.
    pub num_heads: u32,
    /// Query tokens; 0 is legal and does nothing.
    pub num_tokens: i64,
    /// Element type of `parts`: BF16, F16 or F32.
    pub parts_dtype: snapmla_dtype,
    /// Element type of `out`: BF16, F16 or F32.
    pub out_dtype: snapmla_dtype,
    /// Outputs of the parts, [num_parts][num_tokens][num_heads][512].
    pub parts: *const ::std::os::raw::c_void,
    /// Bytes between parts.
    pub parts_part_stride: i64,
    /// Bytes between tokens.
    pub parts_token_stride: i64,
    /// Bytes between heads.
    pub parts_head_stride: i64,
    /// Natural log-sum-exps of the parts, [num_parts][num_tokens][num_heads]; -inf (or +inf, as some kernels write
    /// it) marks a part that attended to nothing, whose output is then not used.
    pub parts_lse: *const f32,
    /// Bytes between parts.
    pub parts_lse_part_stride: i64,
    /// Bytes between tokens.
    pub parts_lse_token_stride: i64,
    /// Bytes between heads.
    pub parts_lse_head_stride: i64,
    /// Out: [num_tokens][num_heads][512].
    pub out: *mut ::std::os::raw::c_void,
    /// Bytes between tokens.
    pub out_token_stride: i64,
    /// Bytes between heads.
    pub out_head_stride: i64,
    /// Out: natural log-sum-exp, [num_tokens][num_heads]; may be NULL.
    pub lse: *mut f32,
    /// Bytes between tokens.
    pub lse_token_stride: i64,
    /// Bytes between heads.
    pub lse_head_stride: i64,
}

/// A question to `snapmla_supports`. Set it with `SNAPMLA_SUPPORT_QUERY_INIT` first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct snapmla_support_query {
    /// `sizeof(struct snapmla_support_query)`.
    pub struct_size: u32,
    /// The flags that `snapmla_decode` would be given.
    pub decode_flags: u32,
    /// Tokens a page.
    pub page_size: u32,
    /// Heads in a decode call.
    pub num_heads: u32,
    /// Query tokens a sequence in a decode call.
    pub q_len: u32,
    /// Numbers in a content row; 512.
    pub content_dim: u32,
    /// Numbers in a rope row; 64.
    pub rope_dim: u32,
    /// Element type of raw queries and new keys, or `SNAPMLA_DTYPE_QUANTISED`.
    pub in_dtype: snapmla_dtype,
    /// Element type of the output.
    pub out_dtype: snapmla_dtype,
    /// 1 to ask about decode over `slots`, 0 for a `block_table`.
    pub over_slots: u32,
}
