// Generates with an unmodified llama.cpp, without the module and with it: tokens a second and the cache's bytes.
//
//     generate BACKENDS MODULE MODEL.gguf [CONTEXT [TOKENS [THREADS]]]
#include "compare.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

// What the engine says of its cache's size, from `from` on in its messages.
static double cache_mebibytes(size_t from) {
    const std::string marker = "KV buffer size =";
    const size_t at = all_messages().find(marker, from);
    return at == std::string::npos ? 0 : atof(all_messages().c_str() + at + marker.size());
}

static void generate(const char * name, const Model & model, Options options, int context, int n) {
    const size_t said = all_messages().size();
    Session session(model, options);
    std::vector<llama_token> prompt;
    for (int i = 0; i < context; i++) {
        prompt.push_back(i * 37 % model.n_vocab());
    }
    std::vector<std::vector<float>> logits;
    for (int from = 0; from < context; from += 512) {
        const int to = from + 512 < context ? from + 512 : context;
        logits = session.decode({{0, from, {prompt.begin() + from, prompt.begin() + to}}});
    }
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    for (int i = 0; i < n && !logits.empty(); i++) {
        const llama_token token = largest(logits.back());
        text += (i == 0 ? "" : " ") + std::to_string(token);
        logits = session.decode({{0, context + i, {token}}});
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (logits.empty()) {
        throw std::runtime_error(std::string(name) + ": decoding failed");
    }
    printf("%-14s %8.1f tokens/s  cache %6.2f MiB (%.0f bytes a token and layer)  %.48s ...\n", name, n / took.count(),
           cache_mebibytes(said), cache_mebibytes(said) * 1048576 / options.n_ctx / llama_model_n_layer(model.get()),
           text.c_str());
}

int main(int argc, char ** argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: generate BACKENDS MODULE MODEL.gguf [CONTEXT [TOKENS [THREADS]]]\n");
        return 2;
    }
    const int context = argc > 4 ? atoi(argv[4]) : 2048;
    const int n = argc > 5 ? atoi(argv[5]) : 64;
    start(argv[1], argv[2]);
    try {
        const Model stock(argv[3], false), ours(argv[3], true);
        Options options;
        options.n_ctx = static_cast<uint32_t>(context + n + 255) / 256 * 256;
        options.n_threads = argc > 6 ? atoi(argv[6]) : 2;
        generate("stock, f16", stock, options, context, n);
        options.cache_type = GGML_TYPE_Q8_0;
        generate("stock, q8_0", stock, options, context, n);
        generate("module, q8_0", ours, options, context, n);
    } catch (const std::exception & error) {
        fprintf(stderr, "%s\n%s\n", error.what(), all_messages().c_str());
        return 1;
    }
    return 0;
}
