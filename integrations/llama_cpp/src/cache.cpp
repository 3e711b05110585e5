#include "cache.h"

#include <cctype>
#include <cstring>

namespace snapmla_ggml {

static int64_t cells_of(const ggml_tensor * root) {
    return ggml_nrows(root);
}

static int64_t pages_of(const ggml_tensor * root) {
    return (cells_of(root) + PAGE - 1) / PAGE;
}

const ggml_tensor * root_of(const ggml_tensor * tensor) {
    return tensor->view_src != nullptr ? tensor->view_src : tensor;
}

// "cache_k_l" and a layer's number, and nothing after it: operations on a cache name their results after it.
static bool is_latent_cache(const ggml_tensor * root) {
    static const char prefix[] = "cache_k_l";
    const char * digits = root->name + sizeof prefix - 1;
    if (root->op != GGML_OP_NONE || strncmp(root->name, prefix, sizeof prefix - 1) != 0 || *digits == '\0') {
        return false;
    }
    while (isdigit(static_cast<unsigned char>(*digits))) {
        digits++;
    }
    return *digits == '\0';
}

bool is_any_cache(const ggml_tensor * root) {
    return root->op == GGML_OP_NONE && root->view_src == nullptr && strncmp(root->name, "cache_", 6) == 0;
}

const char * cache_refusal(const ggml_tensor * root) {
    if (!is_latent_cache(root)) {
        return "is no latent cache: only models with multi-head latent attention are served (run others with -ngl 0, or "
               "without the module)";
    }
    if (root->ne[0] != ROW) {
        return "has rows that are not 512 latent and 64 positional numbers: only models with multi-head latent attention of "
               "that shape are served (run others with -ngl 0, or without the module)";
    }
    switch (root->type) {
        case GGML_TYPE_Q8_0:
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
            return nullptr;
        default:
            return "has a type that is not served: choose the cache types q8_0 (-ctk q8_0 -ctv q8_0, 644 bytes a token) or "
                   "f16, bf16 (1152 bytes a token, as without the module)";
    }
}

bool in_cache(const ggml_tensor * tensor) {
    const ggml_tensor * root = root_of(tensor);
    return is_latent_cache(root) && cache_refusal(root) == nullptr;
}

uint64_t cache_bytes(const ggml_tensor * root) {
    return static_cast<uint64_t>(pages_of(root)) * PAGE * SNAPMLA_RECORD_BYTES;
}

size_t nominal_row_bytes(const ggml_tensor * root) {
    return ggml_row_size(root->type, ROW);
}

// Views of views are views of the root to ggml, with the offsets added up.
static size_t nominal_offset(const ggml_tensor * tensor) {
    return tensor->view_src != nullptr ? tensor->view_offs : 0;
}

int64_t first_cell(const ggml_tensor * tensor) {
    return static_cast<int64_t>(nominal_offset(tensor) / nominal_row_bytes(root_of(tensor)));
}

size_t offset_in_row(const ggml_tensor * tensor) {
    return nominal_offset(tensor) % nominal_row_bytes(root_of(tensor));
}

snapmla::Cache open_cache(const snapmla::Context & context, const ggml_tensor * root) {
    snapmla_cache_params params = SNAPMLA_CACHE_PARAMS_INIT;
    params.flags = SNAPMLA_CACHE_KEEP_CONTENTS;
    params.page_size = PAGE;
    params.num_pages = pages_of(root);
    params.memory = root->data;
    params.memory_size = cache_bytes(root);
    return context.cache(params);
}

} // namespace snapmla_ggml
