// A model with a context, run by llama.cpp as it is.
#pragma once

#include "ggml-backend.h"
#include "llama.h"

#include <memory>
#include <string>
#include <vector>

// A sequence's next tokens; logits are wanted for all of them or for the last.
struct Tokens {
    llama_seq_id seq;
    llama_pos first_pos;
    std::vector<llama_token> tokens;
};

struct Options {
    ggml_type cache_type = GGML_TYPE_F16;
    uint32_t n_ctx = 1024;
    uint32_t n_seq_max = 1;
    bool unified = true;
    llama_flash_attn_type flash_attn = LLAMA_FLASH_ATTN_TYPE_AUTO;
    // Threads that wait for each other crawl on a machine with other work.
    int n_threads = 1;
    uint32_t n_ubatch = 512;
};

// Everything that ggml and llama.cpp have said since the start.
const std::string & all_messages();

class Model {
public:
    // With the module's device, or with none but the CPU.
    Model(const std::string & path, bool with_module);

    llama_model * get() const { return model_.get(); }
    int n_vocab() const;

private:
    std::unique_ptr<llama_model, void (*)(llama_model *)> model_;
};

class Session {
public:
    // Throws std::runtime_error where the engine refuses the options.
    Session(const Model & model, const Options & options);

    // Logits of every token, in order; empty where decoding failed.
    std::vector<std::vector<float>> decode(const std::vector<Tokens> & batch);

    llama_memory_t memory() const { return llama_get_memory(context_.get()); }
    std::vector<uint8_t> save(llama_seq_id seq) const;
    bool restore(llama_seq_id seq, const std::vector<uint8_t> & state);

private:
    int n_vocab_;
    std::unique_ptr<llama_context, void (*)(llama_context *)> context_;
};

// Starts llama.cpp with the backends of a folder, and the module by GGML_BACKEND_PATH or by name.
void start(const char * backends, const char * module);
