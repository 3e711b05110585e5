// Cache tensors: what ggml thinks they are (rows of 576 numbers of some type) and where their records really lie.
//
// ggml addresses a cache by nominal rows: cell i begins at i * ggml_row_size(type, 576). The memory holds pages of 64
// records instead, cell i being slot i. Only whole nominal rows, and parts of them, are ever translated.
#pragma once

#include "engine.h"
#include "ggml.h"

#include <cstdint>

namespace snapmla_ggml {

constexpr int64_t CONTENT = SNAPMLA_CONTENT_DIM;
constexpr int64_t ROPE = SNAPMLA_ROPE_DIM;
constexpr int64_t ROW = CONTENT + ROPE;
constexpr int64_t PAGE = 64;

// The tensor that owns the memory.
const ggml_tensor * root_of(const ggml_tensor * tensor);

// Whether a tensor that owns memory is an engine's cache of some layer: served or not.
bool is_any_cache(const ggml_tensor * root);

// NULL when the tensor is a cache that is served; otherwise why not, for a user to read.
const char * cache_refusal(const ggml_tensor * root);

// Whether the tensor is, or lies in, a cache that is served.
bool in_cache(const ggml_tensor * tensor);

// Bytes that the records of a served cache take.
uint64_t cache_bytes(const ggml_tensor * root);

size_t nominal_row_bytes(const ggml_tensor * root);

// Cell in which the tensor, which lies in a cache, begins.
int64_t first_cell(const ggml_tensor * tensor);

// Where in a nominal row the tensor begins, in bytes.
size_t offset_in_row(const ggml_tensor * tensor);

// The cache as the library takes it. Costs nothing worth keeping it for.
snapmla::Cache open_cache(const snapmla::Context & context, const ggml_tensor * root);

} // namespace snapmla_ggml
