// Times attention over a cache of each kind in turns: llama.cpp's own over F16 and Q8_0, and the module's.
//
//     attention BACKENDS MODULE [THREADS [QUERIES [TURNS]]]
#include "ggml-backend.h"
#include "ggml.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

std::vector<float> normals(size_t n, unsigned seed) {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(n);
    for (float & number : numbers) {
        number = normal(bits);
    }
    return numbers;
}

// One kind of cache with one attention over it.
class Attention {
public:
    Attention(ggml_backend_dev_t device, int n_threads, ggml_type type, int64_t cells, int64_t heads, int64_t queries)
        : backend_(ggml_backend_dev_init(device, nullptr)) {
        using SetThreads = void (*)(ggml_backend_t, int);
        void * set = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads");
        reinterpret_cast<SetThreads>(set)(backend_, n_threads);
        const ggml_init_params params = {64 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true};
        keys_ = ggml_init(params);
        ggml_tensor * cache = ggml_new_tensor_2d(keys_, type, 576, cells);
        ggml_set_name(cache, "cache_k_l0");
        key_memory_ = ggml_backend_alloc_ctx_tensors(keys_, backend_);
        const std::vector<float> rows = normals(576 * cells, 1);
        std::vector<uint8_t> bytes(ggml_nbytes(cache));
        ggml_quantize_chunk(type, rows.data(), bytes.data(), 0, cells, 576, nullptr);
        ggml_backend_tensor_set(cache, bytes.data(), 0, bytes.size());

        rest_ = ggml_init(params);
        ggml_tensor * q = ggml_new_tensor_4d(rest_, GGML_TYPE_F32, 576, heads, queries, 1);
        ggml_tensor * mask = ggml_new_tensor_4d(rest_, GGML_TYPE_F16, cells, queries, 1, 1);
        const size_t row = cache->nb[1];
        ggml_tensor * k = ggml_view_4d(rest_, cache, 576, 1, cells, 1, row, row, row * cells, 0);
        ggml_tensor * v = ggml_view_4d(rest_, cache, 512, 1, cells, 1, row, row, row * cells, 0);
        out_ = ggml_flash_attn_ext(rest_, ggml_permute(rest_, q, 0, 2, 1, 3), ggml_permute(rest_, k, 0, 2, 1, 3),
                                   ggml_permute(rest_, v, 0, 2, 1, 3), mask, 1.0f / std::sqrt(192.0f), 0.0f, 0.0f);
        graph_ = ggml_new_graph(rest_);
        ggml_build_forward_expand(graph_, out_);
        rest_memory_ = ggml_backend_alloc_ctx_tensors(rest_, backend_);
        const std::vector<float> queries_of = normals(ggml_nelements(q), 2);
        ggml_backend_tensor_set(q, queries_of.data(), 0, ggml_nbytes(q));
        // Causal: the queries are the last tokens.
        std::vector<uint16_t> numbers(cells * queries, 0xFC00);
        for (int64_t i = 0; i < queries; i++) {
            std::fill_n(numbers.begin() + i * cells, cells - queries + i + 1, uint16_t(0));
        }
        ggml_backend_tensor_set(mask, numbers.data(), 0, ggml_nbytes(mask));
    }

    ~Attention() {
        ggml_backend_buffer_free(rest_memory_);
        ggml_backend_buffer_free(key_memory_);
        ggml_free(rest_);
        ggml_free(keys_);
        ggml_backend_free(backend_);
    }

    Attention(const Attention &) = delete;
    Attention & operator=(const Attention &) = delete;

    double milliseconds() {
        const auto start = std::chrono::steady_clock::now();
        if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) {
            fprintf(stderr, "the attention failed\n");
            exit(1);
        }
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }

    std::vector<float> result() const {
        std::vector<float> numbers(ggml_nelements(out_));
        ggml_backend_tensor_get(out_, numbers.data(), 0, ggml_nbytes(out_));
        return numbers;
    }

private:
    ggml_backend_t backend_;
    ggml_context * keys_;
    ggml_context * rest_;
    ggml_backend_buffer_t key_memory_;
    ggml_backend_buffer_t rest_memory_;
    ggml_tensor * out_;
    ggml_cgraph * graph_;
};

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

double relative(const std::vector<float> & wanted, const std::vector<float> & got) {
    double error = 0, size = 0;
    for (size_t i = 0; i < wanted.size(); i++) {
        error += std::pow(static_cast<double>(wanted[i]) - got[i], 2);
        size += std::pow(static_cast<double>(wanted[i]), 2);
    }
    return std::sqrt(error / size);
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: attention BACKENDS MODULE [THREADS [QUERIES [TURNS]]]\n");
        return 2;
    }
    const int n_threads = argc > 3 ? atoi(argv[3]) : 2;
    const int64_t queries = argc > 4 ? atoi(argv[4]) : 1;
    const int turns = argc > 5 ? atoi(argv[5]) : 9;
    ggml_backend_load_all_from_path(argv[1]);
    if (ggml_backend_load(argv[2]) == nullptr) {
        return 1;
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t ours = ggml_backend_dev_by_name("SnapMLA");
    printf("%d threads, %lld queries, median of %d turns\n", n_threads, static_cast<long long>(queries), turns);
    printf("heads   cells    f16 ms   q8_0 ms  module ms   over f16  over q8_0  relative L2 to f16\n");
    for (int64_t heads : {16, 128}) {
        for (int64_t cells : {1024, 8192, 32768}) {
            Attention kinds[3] = {{cpu, n_threads, GGML_TYPE_F16, cells, heads, queries},
                                  {cpu, n_threads, GGML_TYPE_Q8_0, cells, heads, queries},
                                  {ours, n_threads, GGML_TYPE_Q8_0, cells, heads, queries}};
            std::vector<double> times[3];
            for (int turn = -1; turn < turns; turn++) {
                for (int kind = 0; kind < 3; kind++) {
                    const double took = kinds[kind].milliseconds();
                    if (turn >= 0) {
                        times[kind].push_back(took);
                    }
                }
            }
            const double f16 = median(times[0]), q8_0 = median(times[1]), module = median(times[2]);
            printf("%5lld  %6lld  %8.2f  %8.2f  %9.2f  %8.2fx  %8.2fx  %.3f\n", static_cast<long long>(heads),
                   static_cast<long long>(cells), f16, q8_0, module, f16 / module, q8_0 / module,
                   relative(kinds[0].result(), kinds[2].result()));
            fflush(stdout);
        }
    }
    return 0;
}
