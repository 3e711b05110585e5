// The header for forks, with ggml's own tensors, on the library's CPU backend: two streams of unequal length.
#include "../cuda_fork/snapmla-ggml.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

static void check(bool holds, int line) {
    if (!holds) {
        printf("cuda_fork.cpp:%d does not hold: %s\n", line, snapmla_last_error_message());
        exit(1);
    }
}
#define CHECK(condition) check(condition, __LINE__)
#define OK(call) check((call) == SNAPMLA_STATUS_OK, __LINE__)

static const int64_t CELLS = 768, STREAMS = 2, HEADS = 5, QUERIES = 3;
static const int32_t LENGTHS[STREAMS] = {700, 64};

static std::mt19937 random_bits(1);

static void fill(ggml_tensor * tensor) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < ggml_nelements(tensor); i++) {
        static_cast<float *>(tensor->data)[i] = normal(random_bits);
    }
}

static void * aligned(size_t size) {
    return std::aligned_alloc(256, (size + 255) / 256 * 256);
}

// Attention in double precision; the rows are those that were given, so FP8's rounding shows.
static double distance(const ggml_tensor * attention, const ggml_tensor * q, const float * keys, int64_t stream, int64_t query,
                       int64_t head, float scale) {
    const float * row = reinterpret_cast<const float *>(static_cast<const char *>(q->data) + query * q->nb[1] +
                                                        head * q->nb[2] + stream * q->nb[3]);
    const int64_t n = LENGTHS[stream] - QUERIES + query + 1;
    std::vector<double> out(512);
    double sum = 0;
    for (int64_t cell = 0; cell < n; cell++) {
        const float * key = keys + (stream * CELLS + cell) * 576;
        double logit = 0;
        for (int d = 0; d < 576; d++) {
            logit += static_cast<double>(row[d]) * key[d];
        }
        const double weight = std::exp(logit * scale);
        sum += weight;
        for (int d = 0; d < 512; d++) {
            out[d] += weight * key[d];
        }
    }
    const float * got = reinterpret_cast<const float *>(static_cast<const char *>(attention->data) + head * attention->nb[1] +
                                                        query * attention->nb[2] + stream * attention->nb[3]);
    double error = 0, size = 0;
    for (int d = 0; d < 512; d++) {
        const double wanted = out[d] / sum;
        error += (got[d] - wanted) * (got[d] - wanted);
        size += wanted * wanted;
    }
    return std::sqrt(error / size);
}

int main() {
    ggml_context * ggml = ggml_init({64 << 20, nullptr, false});
    snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
    params.backend = SNAPMLA_BACKEND_CPU;
    snapmla_context * context = nullptr;
    OK(snapmla_context_create(&params, &context));

    ggml_tensor * cache = ggml_new_tensor_3d(ggml, GGML_TYPE_Q8_0, 576, CELLS, STREAMS);
    CHECK(snapmla_ggml_cache_bytes(cache) == 644u * CELLS * STREAMS);
    cache->data = aligned(snapmla_ggml_cache_bytes(cache));
    const snapmla_cache_params geometry = snapmla_ggml_cache_params(cache);
    snapmla_cache * pages = nullptr;
    OK(snapmla_cache_init(context, &geometry, nullptr, &pages));

    ggml_tensor * rows = ggml_new_tensor_2d(ggml, GGML_TYPE_F32, 576, CELLS * STREAMS);
    ggml_tensor * indices = ggml_new_tensor_1d(ggml, GGML_TYPE_I64, CELLS * STREAMS);
    fill(rows);
    for (int64_t i = 0; i < CELLS * STREAMS; i++) {
        static_cast<int64_t *>(indices->data)[i] = i;
    }
    ggml_tensor * append = ggml_set_rows(ggml, ggml_reshape_2d(ggml, cache, 576, CELLS * STREAMS), rows, indices);
    CHECK(snapmla_ggml_set_rows_supported(append));
    const snapmla_k_append_params new_tokens = snapmla_ggml_set_rows_params(append);
    OK(snapmla_k_append(context, pages, &new_tokens, nullptr));

    // As llama.cpp permutes them.
    ggml_tensor * q = ggml_new_tensor_4d(ggml, GGML_TYPE_F32, 576, HEADS, QUERIES, STREAMS);
    fill(q);
    q = ggml_permute(ggml, q, 0, 2, 1, 3);
    ggml_tensor * k = ggml_view_4d(ggml, cache, 576, 1, CELLS, STREAMS, cache->nb[1], cache->nb[1], cache->nb[2], 0);
    ggml_tensor * v = ggml_view_4d(ggml, k, 512, 1, CELLS, STREAMS, k->nb[1], k->nb[2], k->nb[3], 0);
    ggml_tensor * mask = ggml_new_tensor_4d(ggml, GGML_TYPE_F16, CELLS, QUERIES, 1, STREAMS);
    const float scale = 0.03f;
    ggml_tensor * attention = ggml_flash_attn_ext(ggml, q, ggml_permute(ggml, k, 0, 2, 1, 3), ggml_permute(ggml, v, 0, 2, 1, 3),
                                                  mask, scale, 0.0f, 0.0f);
    CHECK(!snapmla_ggml_attention_supported(attention));
    ggml_tensor * lengths = ggml_new_tensor_1d(ggml, GGML_TYPE_I32, STREAMS);
    ggml_tensor * table = ggml_new_tensor_2d(ggml, GGML_TYPE_I32, CELLS / 64, STREAMS);
    for (int64_t i = 0; i < STREAMS; i++) {
        static_cast<int32_t *>(lengths->data)[i] = LENGTHS[i];
    }
    for (int64_t i = 0; i < CELLS / 64 * STREAMS; i++) {
        static_cast<int32_t *>(table->data)[i] = static_cast<int32_t>(i);
    }
    attention->src[SNAPMLA_GGML_SRC_SEQ_LENS] = lengths;
    attention->src[SNAPMLA_GGML_SRC_BLOCK_TABLE] = table;
    CHECK(snapmla_ggml_attention_supported(attention));
    const size_t size = snapmla_ggml_attention_alloc_size(context, attention);
    CHECK(size > ggml_nbytes(attention));
    attention->data = aligned(size);
    const snapmla_decode_params call = snapmla_ggml_attention_params(attention, size);
    OK(snapmla_decode(context, pages, &call, nullptr));

    for (int64_t stream = 0; stream < STREAMS; stream++) {
        for (int64_t query = 0; query < QUERIES; query++) {
            for (int64_t head = 0; head < HEADS; head++) {
                CHECK(distance(attention, q, static_cast<const float *>(rows->data), stream, query, head, scale) < 0.08);
            }
        }
    }
    attention->src[4] = mask;
    CHECK(!snapmla_ggml_attention_supported(attention));
    OK(snapmla_cache_destroy(pages));
    OK(snapmla_context_destroy(context));
    std::free(cache->data);
    std::free(attention->data);
    ggml_free(ggml);
    return 0;
}
