// Cells read and written as floats, and as the nominal rows that ggml takes them for.
#pragma once

#include "cache.h"

namespace snapmla_ggml {

// Where cells stand as F32. Strides are bytes, 0 where the rows of a part follow each other. A NULL part is skipped.
struct FloatRows {
    float * content;
    int64_t content_stride;
    float * rope;
    int64_t rope_stride;
};

// Cells `first` to `first + n` of a cache.
void read_cells(Engine & engine, const ggml_tensor * root, int64_t first, int64_t n, FloatRows to);
void write_cells(Engine & engine, const ggml_tensor * root, int64_t first, int64_t n, FloatRows from);

// Bytes `offset` to `offset + size` of the nominal rows.
void read_nominal(Engine & engine, const ggml_tensor * root, void * data, size_t offset, size_t size);
void write_nominal(Engine & engine, const ggml_tensor * root, const void * data, size_t offset, size_t size);

// Copies cells from a cache to another one, or within one, record by record.
bool copy_cells(Engine & engine, const ggml_tensor * from, const ggml_tensor * to);

} // namespace snapmla_ggml
