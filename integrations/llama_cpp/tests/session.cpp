#include "session.h"

#include <cstdlib>
#include <stdexcept>

static std::string messages;

const std::string & all_messages() {
    return messages;
}

static void keep(ggml_log_level, const char * text, void *) {
    messages += text;
}

void start(const char * backends, const char * module) {
    llama_log_set(keep, nullptr);
    ggml_log_set(keep, nullptr);
    setenv("GGML_BACKEND_PATH", module, 1);
    ggml_backend_load_all_from_path(backends);
    llama_backend_init();
}

static llama_model * load(const std::string & path, bool with_module) {
    llama_model_params params = llama_model_default_params();
    ggml_backend_dev_t none[] = {nullptr};
    if (!with_module) {
        params.devices = none;
    }
    return llama_model_load_from_file(path.c_str(), params);
}

Model::Model(const std::string & path, bool with_module) : model_(load(path, with_module), llama_model_free) {
    if (!model_) {
        throw std::runtime_error("no model " + path);
    }
}

int Model::n_vocab() const {
    return llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
}

static llama_context * open(const Model & model, const Options & options) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = options.n_ctx;
    params.n_batch = 2048;
    params.n_ubatch = options.n_ubatch;
    params.n_seq_max = options.n_seq_max;
    params.n_threads = params.n_threads_batch = options.n_threads;
    params.type_k = params.type_v = options.cache_type;
    params.kv_unified = options.unified;
    params.flash_attn_type = options.flash_attn;
    return llama_init_from_model(model.get(), params);
}

Session::Session(const Model & model, const Options & options)
    : n_vocab_(model.n_vocab()), context_(open(model, options), llama_free) {
    if (!context_) {
        throw std::runtime_error("the engine refuses the context");
    }
}

std::vector<std::vector<float>> Session::decode(const std::vector<Tokens> & parts) {
    int32_t n = 0;
    for (const Tokens & part : parts) {
        n += static_cast<int32_t>(part.tokens.size());
    }
    llama_batch batch = llama_batch_init(n, 0, 1);
    for (const Tokens & part : parts) {
        for (size_t i = 0; i < part.tokens.size(); i++) {
            const int32_t at = batch.n_tokens++;
            batch.token[at] = part.tokens[i];
            batch.pos[at] = part.first_pos + static_cast<llama_pos>(i);
            batch.n_seq_id[at] = 1;
            batch.seq_id[at][0] = part.seq;
            batch.logits[at] = 1;
        }
    }
    std::vector<std::vector<float>> logits;
    if (llama_decode(context_.get(), batch) == 0) {
        for (int32_t i = 0; i < n; i++) {
            const float * row = llama_get_logits_ith(context_.get(), i);
            logits.emplace_back(row, row + n_vocab_);
        }
    }
    llama_batch_free(batch);
    return logits;
}

std::vector<uint8_t> Session::save(llama_seq_id seq) const {
    std::vector<uint8_t> state(llama_state_seq_get_size(context_.get(), seq));
    state.resize(llama_state_seq_get_data(context_.get(), state.data(), state.size(), seq));
    return state;
}

bool Session::restore(llama_seq_id seq, const std::vector<uint8_t> & state) {
    return llama_state_seq_set_data(context_.get(), state.data(), state.size(), seq) == state.size();
}
