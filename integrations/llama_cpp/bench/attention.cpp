#include "attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>

static const int64_t ROW = 576, CONTENT = 512;

static std::vector<float> normals(int64_t n, unsigned seed) {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(n);
    for (float & number : numbers) {
        number = normal(bits);
    }
    return numbers;
}

Inputs::Inputs(const Shape & shape)
    : shape(shape), keys(normals(ROW * shape.cells, 1)), queries(normals(ROW * shape.heads * shape.queries, 2)),
      mask(shape.cells * shape.queries, 0xFC00) {
    for (int64_t i = 0; i < shape.queries; i++) {
        std::fill_n(mask.begin() + i * shape.cells, shape.cells - shape.queries + i + 1, uint16_t(0));
    }
}

static ggml_context * new_context() {
    return ggml_init({64 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true});
}

Attention::Attention(ggml_backend_dev_t device, int n_threads, ggml_type type, const Inputs & inputs,
                     ggml_type query_type)
    : backend_(ggml_backend_dev_init(device, nullptr)), keys_(new_context()), rest_(new_context()) {
    using SetThreads = void (*)(ggml_backend_t, int);
    void * set = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads");
    reinterpret_cast<SetThreads>(set)(backend_, n_threads);
    put_keys(type, inputs);
    put_operation(inputs, query_type);
}

void Attention::put_keys(ggml_type type, const Inputs & inputs) {
    const int64_t cells = inputs.shape.cells;
    cache_ = ggml_new_tensor_2d(keys_, type, ROW, cells);
    ggml_set_name(cache_, "cache_k_l0");
    key_memory_ = ggml_backend_alloc_ctx_tensors(keys_, backend_);
    std::vector<uint8_t> bytes(ggml_nbytes(cache_));
    ggml_quantize_chunk(type, inputs.keys.data(), bytes.data(), 0, cells, ROW, nullptr);
    ggml_backend_tensor_set(cache_, bytes.data(), 0, bytes.size());
}

void Attention::put_operation(const Inputs & inputs, ggml_type query_type) {
    const Shape & shape = inputs.shape;
    ggml_tensor * q = ggml_new_tensor_4d(rest_, query_type, ROW, shape.heads, shape.queries, 1);
    ggml_tensor * mask = ggml_new_tensor_4d(rest_, GGML_TYPE_F16, shape.cells, shape.queries, 1, 1);
    const size_t row = cache_->nb[1];
    ggml_tensor * k = ggml_view_4d(rest_, cache_, ROW, 1, shape.cells, 1, row, row, row * shape.cells, 0);
    ggml_tensor * v = ggml_view_4d(rest_, cache_, CONTENT, 1, shape.cells, 1, row, row, row * shape.cells, 0);
    out_ = ggml_flash_attn_ext(rest_, ggml_permute(rest_, q, 0, 2, 1, 3), ggml_permute(rest_, k, 0, 2, 1, 3),
                               ggml_permute(rest_, v, 0, 2, 1, 3), mask, 1.0f / std::sqrt(192.0f), 0.0f, 0.0f);
    graph_ = ggml_new_graph(rest_);
    ggml_build_forward_expand(graph_, out_);
    rest_memory_ = ggml_backend_alloc_ctx_tensors(rest_, backend_);
    std::vector<uint8_t> queries(ggml_nbytes(q));
    ggml_quantize_chunk(query_type, inputs.queries.data(), queries.data(), 0, shape.heads * shape.queries, ROW, nullptr);
    ggml_backend_tensor_set(q, queries.data(), 0, queries.size());
    ggml_backend_tensor_set(mask, inputs.mask.data(), 0, ggml_nbytes(mask));
}

Attention::~Attention() {
    ggml_backend_buffer_free(rest_memory_);
    ggml_backend_buffer_free(key_memory_);
    ggml_free(rest_);
    ggml_free(keys_);
    ggml_backend_free(backend_);
}

double Attention::milliseconds() {
    const auto start = std::chrono::steady_clock::now();
    if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) {
        throw std::runtime_error("the attention failed");
    }
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<float> Attention::result() const {
    std::vector<float> numbers(ggml_nelements(out_));
    ggml_backend_tensor_get(out_, numbers.data(), 0, ggml_nbytes(out_));
    return numbers;
}
