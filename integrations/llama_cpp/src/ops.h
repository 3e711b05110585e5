// The operations that are claimed. `*_supported` looks at shapes and types only; the others run, or throw.
#pragma once

#include "engine.h"
#include "ggml.h"

namespace snapmla_ggml {

// SET_ROWS into a cache: new tokens.
bool set_rows_supported(const ggml_tensor * op);
void set_rows(Engine & engine, ggml_tensor * op);

// FLASH_ATTN_EXT over a cache, with 576 and 512 numbers a row.
bool attention_supported(const ggml_tensor * op);
void attention(Engine & engine, ggml_tensor * op);

// CPY of the positional part of cells to F32 or back, and ROPE on it in place: how positions are shifted.
bool copy_supported(const ggml_tensor * op);
void copy(Engine & engine, ggml_tensor * op);
bool rope_supported(const ggml_tensor * op);
void rope(Engine & engine, ggml_tensor * op);

// The library's name of a type; 0 for one that it does not take.
snapmla_dtype dtype_of(ggml_type type);

} // namespace snapmla_ggml
