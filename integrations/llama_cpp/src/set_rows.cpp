#include "cache.h"
#include "ops.h"

#include <vector>

namespace snapmla_ggml {

snapmla_dtype dtype_of(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return SNAPMLA_DTYPE_F32;
        case GGML_TYPE_F16: return SNAPMLA_DTYPE_F16;
        case GGML_TYPE_BF16: return SNAPMLA_DTYPE_BF16;
        default: return 0;
    }
}

bool set_rows_supported(const ggml_tensor * op) {
    const ggml_tensor * rows = op->src[0];
    const ggml_tensor * indices = op->src[1];
    return in_cache(op) && op->ne[0] == ROW && ggml_is_contiguous(op) && offset_in_row(op) == 0 &&
           dtype_of(rows->type) != 0 && rows->ne[0] == ROW && rows->ne[2] == 1 && rows->ne[3] == 1 &&
           rows->nb[0] == ggml_type_size(rows->type) &&
           (indices->type == GGML_TYPE_I64 || indices->type == GGML_TYPE_I32) && ggml_is_contiguous(indices) &&
           ggml_nelements(indices) == rows->ne[1];
}

static std::vector<int64_t> slots_of(const ggml_tensor * indices, int64_t first) {
    std::vector<int64_t> slots(ggml_nelements(indices));
    for (size_t i = 0; i < slots.size(); i++) {
        slots[i] = first + (indices->type == GGML_TYPE_I64 ? static_cast<const int64_t *>(indices->data)[i]
                                                           : static_cast<const int32_t *>(indices->data)[i]);
    }
    return slots;
}

void set_rows(Engine & engine, ggml_tensor * op) {
    const ggml_tensor * rows = op->src[0];
    const std::vector<int64_t> slots = slots_of(op->src[1], first_cell(op));
    snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
    params.dtype = dtype_of(rows->type);
    params.num_tokens = rows->ne[1];
    params.content = rows->data;
    params.content_stride = static_cast<int64_t>(rows->nb[1]);
    params.rope = static_cast<const char *>(rows->data) + CONTENT * rows->nb[0];
    params.rope_stride = params.content_stride;
    params.slots = slots.data();
    snapmla::Context & context = engine.context();
    context.k_append(open_cache(context, root_of(op)), params);
}

} // namespace snapmla_ggml
