// The library as one ggml backend uses it: a context with its threads, and workspace.
#pragma once

#include "snapmla.hpp"

#include <cstdint>
#include <memory>

namespace snapmla_ggml {

class Engine {
public:
    // 0 threads: one for each core the process may use.
    explicit Engine(int n_threads = 0);

    void set_threads(int n_threads);

    // Opened at first use, so that a module that is only loaded costs nothing.
    snapmla::Context & context();

    // 256-byte aligned, grown to the largest size asked for.
    void * workspace(uint64_t size);

private:
    struct Free {
        void operator()(void * memory) const;
    };

    int n_threads_;
    snapmla::Context context_;
    std::unique_ptr<void, Free> workspace_;
    uint64_t workspace_size_ = 0;
};

} // namespace snapmla_ggml
