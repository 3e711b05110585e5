// Context shift: llama.cpp turns the positional part of every cell by a rotation of its own. Of a quantised cache it
// copies that part to F32, turns it and copies it back; any other it turns in place.
#include "cache.h"
#include "ggml-backend.h"
#include "ops.h"
#include "rows.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace snapmla_ggml {

// Whether the tensor is the positional part of consecutive cells of a cache: [64, 1, cells].
static bool is_rope_part(const ggml_tensor * tensor) {
    if (!in_cache(tensor)) {
        return false;
    }
    const ggml_tensor * root = root_of(tensor);
    return tensor->ne[0] == ROPE && tensor->ne[1] == 1 && tensor->ne[3] == 1 &&
           tensor->nb[2] == nominal_row_bytes(root) && offset_in_row(tensor) == ggml_row_size(root->type, CONTENT);
}

static bool is_rope_floats(const ggml_tensor * tensor) {
    return !in_cache(tensor) && tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

// A record is written whole: its latent numbers, already rounded, round to themselves.
static void write_rope(Engine & engine, const ggml_tensor * part, float * rope) {
    const int64_t n = part->ne[2], first = first_cell(part);
    std::vector<float> content(n * CONTENT);
    read_cells(engine, root_of(part), first, n, {content.data(), 0, nullptr, 0});
    write_cells(engine, root_of(part), first, n, {content.data(), 0, rope, 0});
}

static void read_rope(Engine & engine, const ggml_tensor * part, float * rope) {
    read_cells(engine, root_of(part), first_cell(part), part->ne[2], {nullptr, 0, rope, 0});
}

bool copy_supported(const ggml_tensor * op) {
    const ggml_tensor * from = op->src[0];
    return (is_rope_part(from) && is_rope_floats(op)) || (is_rope_floats(from) && is_rope_part(op));
}

// llama.cpp keeps other models' quantised caches Hadamard-transformed, and its context shift transforms back before it
// turns positions and forth again after. It never transforms the caches of these models, but shifts them likewise: so
// they are handed over transformed, and taken back so. The transform is its own inverse.
static bool shifted_transformed() {
    const char * disabled = std::getenv("LLAMA_ATTN_ROT_DISABLE");
    return disabled == nullptr || atoi(disabled) == 0;
}

static void transform(float * row) {
    for (int64_t half = 1; half < ROPE; half *= 2) {
        for (int64_t i = 0; i < ROPE; i++) {
            if ((i & half) == 0) {
                const float a = row[i], b = row[i + half];
                row[i] = a + b;
                row[i + half] = a - b;
            }
        }
    }
    for (int64_t i = 0; i < ROPE; i++) {
        row[i] *= 0.125f; // 1 / sqrt(64)
    }
}

void copy(Engine & engine, ggml_tensor * op) {
    const ggml_tensor * from = op->src[0];
    const bool out = in_cache(from);
    const int64_t n = out ? from->ne[2] : op->ne[2];
    std::vector<float> rope(n * ROPE);
    if (!out) {
        std::copy_n(static_cast<const float *>(from->data), rope.size(), rope.data());
    } else {
        read_rope(engine, from, rope.data());
    }
    // What comes straight from the rotation was not transformed.
    if (shifted_transformed() && from->op != GGML_OP_ROPE) {
        for (int64_t i = 0; i < n; i++) {
            transform(&rope[i * ROPE]);
        }
    }
    if (out) {
        std::copy(rope.begin(), rope.end(), static_cast<float *>(op->data));
    } else {
        write_rope(engine, op, rope.data());
    }
}

bool rope_supported(const ggml_tensor * op) {
    return is_rope_part(op->src[0]) && is_rope_part(op) && first_cell(op) == first_cell(op->src[0]) &&
           op->ne[2] == op->src[0]->ne[2];
}

namespace {

struct FreeContext {
    void operator()(ggml_context * context) const { ggml_free(context); }
};
struct FreeBackend {
    void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); }
};

} // namespace

// The rotation itself is ggml's: the same operation, on floats, by its CPU backend.
static void rotate(const ggml_tensor * op, float * numbers) {
    const ggml_init_params params = {2 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true};
    const std::unique_ptr<ggml_context, FreeContext> context(ggml_init(params));
    const std::unique_ptr<ggml_backend, FreeBackend> cpu(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    if (!context || !cpu) {
        throw std::runtime_error("no CPU backend to turn positions with");
    }
    ggml_tensor * from = ggml_new_tensor(context.get(), GGML_TYPE_F32, 4, op->src[0]->ne);
    from->data = numbers;
    ggml_tensor * to = ggml_view_tensor(context.get(), from);
    to->data = numbers;
    to->op = op->op;
    std::copy(std::begin(op->op_params), std::end(op->op_params), std::begin(to->op_params));
    to->src[0] = from;
    to->src[1] = op->src[1];
    to->src[2] = op->src[2];
    ggml_cgraph * graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, to);
    if (ggml_backend_graph_compute(cpu.get(), graph) != GGML_STATUS_SUCCESS) {
        throw std::runtime_error("the CPU backend failed to turn positions");
    }
}

void rope(Engine & engine, ggml_tensor * op) {
    std::vector<float> numbers(op->ne[2] * ROPE);
    read_rope(engine, op->src[0], numbers.data());
    rotate(op, numbers.data());
    write_rope(engine, op, numbers.data());
}

} // namespace snapmla_ggml
