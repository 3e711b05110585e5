// One attention operation over a cache of some kind, to be timed.
#pragma once

#include "ggml-backend.h"
#include "ggml.h"

#include <cstdint>
#include <vector>

struct Shape {
    int64_t queries, heads, cells;
};

// Numbers that all kinds of cache get alike.
struct Inputs {
    explicit Inputs(const Shape & shape);

    Shape shape;
    std::vector<float> keys, queries;
    // F16, causal: the queries are the last tokens.
    std::vector<uint16_t> mask;
};

// A backend with its cache and the graph of one attention over it.
class Attention {
public:
    // `type` is the cache's, `query_type` F32, F16 or BF16.
    Attention(ggml_backend_dev_t device, int n_threads, ggml_type type, const Inputs & inputs,
              ggml_type query_type = GGML_TYPE_F32);
    ~Attention();
    Attention(const Attention &) = delete;
    Attention & operator=(const Attention &) = delete;

    // Computes it once. Throws std::runtime_error where the backend fails.
    double milliseconds();

    std::vector<float> result() const;

    const ggml_tensor * operation() const { return out_; }

private:
    void put_keys(ggml_type type, const Inputs & inputs);
    void put_operation(const Inputs & inputs, ggml_type query_type);

    ggml_backend_t backend_;
    // The keys have a context of their own: a cache is all that its buffer holds.
    ggml_context * keys_;
    ggml_context * rest_;
    ggml_backend_buffer_t key_memory_ = nullptr;
    ggml_backend_buffer_t rest_memory_ = nullptr;
    ggml_tensor * cache_ = nullptr;
    ggml_tensor * out_ = nullptr;
    ggml_cgraph * graph_ = nullptr;
};
