#include "engine.h"

#include <cstdlib>
#include <new>

namespace snapmla_ggml {

Engine::Engine(int n_threads) : n_threads_(n_threads) {}

void Engine::set_threads(int n_threads) {
    if (n_threads != n_threads_) {
        n_threads_ = n_threads;
        context_.reset();
    }
}

snapmla::Context & Engine::context() {
    if (!context_) {
        snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
        params.backend = SNAPMLA_BACKEND_CPU;
        params.cpu_threads = n_threads_ > 0 ? static_cast<uint32_t>(n_threads_) : 0;
        context_ = snapmla::Context(params);
    }
    return context_;
}

void * Engine::workspace(uint64_t size) {
    if (size > workspace_size_) {
        workspace_.reset();
        workspace_size_ = 0;
        const uint64_t padded = (size + 255) / 256 * 256;
        workspace_.reset(std::aligned_alloc(256, padded));
        if (!workspace_) {
            throw std::bad_alloc();
        }
        workspace_size_ = padded;
    }
    return size == 0 ? nullptr : workspace_.get();
}

void Engine::Free::operator()(void * memory) const {
    std::free(memory);
}

} // namespace snapmla_ggml
