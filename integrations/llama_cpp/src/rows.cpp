#include "rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace snapmla_ggml {

// Rows translated at a time: their floats stay in the cache of a core.
static const int64_t CHUNK = 64;

static std::vector<int64_t> slots_from(int64_t first, int64_t n) {
    std::vector<int64_t> slots(n);
    std::iota(slots.begin(), slots.end(), first);
    return slots;
}

void read_cells(Engine & engine, const ggml_tensor * root, int64_t first, int64_t n, FloatRows to) {
    const std::vector<int64_t> slots = slots_from(first, n);
    snapmla_fetch_params params = SNAPMLA_FETCH_PARAMS_INIT;
    params.dtype = SNAPMLA_DTYPE_F32;
    params.num_tokens = n;
    params.slots = slots.data();
    params.content = to.content;
    params.content_stride = to.content_stride;
    params.rope = to.rope;
    params.rope_stride = to.rope_stride;
    snapmla::Context & context = engine.context();
    context.fetch_dequant(open_cache(context, root), params);
}

void write_cells(Engine & engine, const ggml_tensor * root, int64_t first, int64_t n, FloatRows from) {
    const std::vector<int64_t> slots = slots_from(first, n);
    snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
    params.dtype = SNAPMLA_DTYPE_F32;
    params.num_tokens = n;
    params.slots = slots.data();
    params.content = from.content;
    params.content_stride = from.content_stride;
    params.rope = from.rope;
    params.rope_stride = from.rope_stride;
    snapmla::Context & context = engine.context();
    context.k_append(open_cache(context, root), params);
}

// Some nominal rows, as bytes and as floats.
struct Chunk {
    explicit Chunk(const ggml_tensor * root)
        : type(root->type), row_bytes(nominal_row_bytes(root)), bytes(CHUNK * row_bytes), floats(CHUNK * ROW) {}

    FloatRows rows() {
        const int64_t stride = ROW * static_cast<int64_t>(sizeof(float));
        return {floats.data(), stride, floats.data() + CONTENT, stride};
    }

    void encode(int64_t n) {
        ggml_quantize_chunk(type, floats.data(), bytes.data(), 0, n, ROW, nullptr);
    }

    void decode(int64_t n) {
        if (type == GGML_TYPE_F32) {
            memcpy(floats.data(), bytes.data(), n * row_bytes);
        } else {
            ggml_get_type_traits(type)->to_float(bytes.data(), floats.data(), n * ROW);
        }
    }

    ggml_type type;
    size_t row_bytes;
    std::vector<uint8_t> bytes;
    std::vector<float> floats;
};

// Calls `work(first row, rows, bytes skipped in the first row, bytes)` for a range of bytes, chunk by chunk.
template <typename Work> static void for_chunks(size_t row_bytes, size_t offset, size_t size, Work work) {
    while (size > 0) {
        const size_t skip = offset % row_bytes;
        const size_t bytes = std::min(size, CHUNK * row_bytes - skip);
        work(static_cast<int64_t>(offset / row_bytes), static_cast<int64_t>((skip + bytes + row_bytes - 1) / row_bytes), skip,
             bytes);
        offset += bytes;
        size -= bytes;
    }
}

void read_nominal(Engine & engine, const ggml_tensor * root, void * data, size_t offset, size_t size) {
    Chunk chunk(root);
    uint8_t * to = static_cast<uint8_t *>(data);
    for_chunks(chunk.row_bytes, offset, size, [&](int64_t first, int64_t n, size_t skip, size_t bytes) {
        read_cells(engine, root, first, n, chunk.rows());
        chunk.encode(n);
        memcpy(to, chunk.bytes.data() + skip, bytes);
        to += bytes;
    });
}

void write_nominal(Engine & engine, const ggml_tensor * root, const void * data, size_t offset, size_t size) {
    Chunk chunk(root);
    const uint8_t * from = static_cast<const uint8_t *>(data);
    for_chunks(chunk.row_bytes, offset, size, [&](int64_t first, int64_t n, size_t skip, size_t bytes) {
        if (bytes != n * chunk.row_bytes) {
            // Part of a row: the rest stays as it is.
            read_cells(engine, root, first, n, chunk.rows());
            chunk.encode(n);
        }
        memcpy(chunk.bytes.data() + skip, from, bytes);
        chunk.decode(n);
        write_cells(engine, root, first, n, chunk.rows());
        from += bytes;
    });
}

bool copy_cells(Engine & engine, const ggml_tensor * from, const ggml_tensor * to) {
    const ggml_tensor * root = root_of(from);
    const bool whole = ggml_is_contiguous(from) && ggml_is_contiguous(to) && from->ne[0] == ROW && to->ne[0] == ROW &&
                       offset_in_row(from) == 0 && offset_in_row(to) == 0;
    if (!whole || root != root_of(to) || ggml_nrows(from) != ggml_nrows(to)) {
        return false;
    }
    const int64_t n = ggml_nrows(from);
    const std::vector<int64_t> src = slots_from(first_cell(from), n), dst = slots_from(first_cell(to), n);
    snapmla_records_copy_params params = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
    params.num_records = n;
    params.src_slots = src.data();
    params.dst_slots = dst.data();
    snapmla::Context & context = engine.context();
    context.records_copy(open_cache(context, root), params);
    return true;
}

} // namespace snapmla_ggml
