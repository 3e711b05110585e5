// The module in an unmodified llama.cpp, held against the same engine without it.
//
//     engine BACKENDS MODULE DENSE.gguf MOE.gguf [TEST...]
#include "compare.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>

namespace {

struct Fixture {
    Model stock, ours, moe;
};

std::vector<llama_token> random_tokens(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<llama_token> tokens(n);
    for (llama_token & token : tokens) {
        token = static_cast<llama_token>(random() % 128);
    }
    return tokens;
}

void expect(bool holds, const char * what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

Options with(ggml_type type, uint32_t n_seq_max = 1, bool unified = true) {
    Options options;
    options.cache_type = type;
    options.n_seq_max = n_seq_max;
    options.unified = unified;
    return options;
}

// Stock with an F16 cache against the module with the given options.
Pair pair_of(const Fixture & fixture, Options options) {
    Session ours(fixture.ours, options);
    options.cache_type = GGML_TYPE_F16;
    return Pair(Session(fixture.stock, options), std::move(ours));
}

// What FP8 in the cache may cost.
void report(const char * what, const Distance & distance) {
    printf("  %-34s rows %5zu  mean KL %.2e  max KL %.2e  max difference %.3f  same choice %.1f %%\n", what, distance.rows,
           distance.mean_kl(), distance.largest_kl, distance.largest_difference,
           100.0 * static_cast<double>(distance.same_choice) / static_cast<double>(distance.rows));
    expect(distance.finite, "a logit is not finite");
    expect(distance.mean_kl() < 1e-3, "mean KL divergence");
    expect(distance.largest_kl < 5e-3, "largest KL divergence");
    expect(distance.largest_difference < 0.4, "largest difference of logits");
}

// One token for each sequence at a time, as the stock session chooses; `next` and `pos` go on.
void generate(Pair & pair, std::vector<llama_token> & next, std::vector<llama_pos> & pos, int steps) {
    for (int step = 0; step < steps; step++) {
        std::vector<Tokens> batch;
        for (size_t seq = 0; seq < next.size(); seq++) {
            batch.push_back({static_cast<llama_seq_id>(seq), pos[seq]++, {next[seq]}});
        }
        next = pair.decode(batch);
    }
}

// A prompt for each sequence, all in one batch; then as `generate`.
void prompts(Pair & pair, const std::vector<size_t> & lengths, std::vector<llama_token> & next, std::vector<llama_pos> & pos) {
    std::vector<Tokens> batch;
    for (size_t seq = 0; seq < lengths.size(); seq++) {
        batch.push_back({static_cast<llama_seq_id>(seq), 0, random_tokens(lengths[seq], static_cast<unsigned>(seq + 1))});
    }
    const std::vector<llama_token> choices = pair.decode(batch);
    next.clear();
    pos.clear();
    size_t end = 0;
    for (size_t length : lengths) {
        end += length;
        next.push_back(choices[end - 1]);
        pos.push_back(static_cast<llama_pos>(length));
    }
}

void cache_types(const Fixture & fixture) {
    for (ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_F16, GGML_TYPE_BF16}) {
        Pair pair = pair_of(fixture, with(type));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {300}, next, pos);
        generate(pair, next, pos, 16);
        report(ggml_type_name(type), pair.distance);
    }
    expect(all_messages().find("SnapMLA KV buffer size") != std::string::npos, "the cache does not lie in the module's memory");
}

void real_savings(const Fixture & fixture) {
    Options options = with(GGML_TYPE_Q8_0);
    options.n_ctx = 4096;
    const Session session(fixture.ours, options);
    // 2 layers, 4096 cells, 644 bytes.
    const std::string size = "SnapMLA KV buffer size =     5.03 MiB";
    expect(all_messages().find(size) != std::string::npos, "a q8_0 cache is not 644 bytes a token");
}

void long_prompts(const Fixture & fixture) {
    for (uint32_t n_ubatch : {32u, 512u}) {
        Options options = with(GGML_TYPE_Q8_0);
        options.n_ubatch = n_ubatch;
        Pair pair = pair_of(fixture, options);
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {900}, next, pos);
        generate(pair, next, pos, 4);
        report(n_ubatch == 32 ? "900 tokens, 32 at once" : "900 tokens, 512 at once", pair.distance);
    }
}

void several_sequences(const Fixture & fixture) {
    for (bool unified : {true, false}) {
        Pair pair = pair_of(fixture, with(GGML_TYPE_Q8_0, 4, unified));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {70, 33, 5, 120}, next, pos);
        generate(pair, next, pos, 40);
        report(unified ? "4 sequences, unified" : "4 sequences, split", pair.distance);
    }
}

// Cells freed in the middle are taken by other sequences' tokens: no mask is a prefix any more.
void holes(const Fixture & fixture) {
    for (bool unified : {true, false}) {
        Pair pair = pair_of(fixture, with(GGML_TYPE_Q8_0, 2, unified));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {100, 60}, next, pos);
        pair.both([](Session & session) {
            expect(llama_memory_seq_rm(session.memory(), 0, 20, 50), "removal");
            expect(llama_memory_seq_rm(session.memory(), 1, 7, 9), "removal");
        });
        generate(pair, next, pos, 60);
        pair.decode({{1, pos[1], random_tokens(90, 9)}});
        report(unified ? "holes, unified" : "holes, split", pair.distance);
    }
}

void sequence_copies(const Fixture & fixture) {
    for (bool unified : {true, false}) {
        Pair pair = pair_of(fixture, with(GGML_TYPE_Q8_0, 3, unified));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {90}, next, pos);
        pair.both([](Session & session) {
            llama_memory_seq_cp(session.memory(), 0, 1, -1, -1);
            llama_memory_seq_cp(session.memory(), 0, 2, -1, -1);
        });
        next = {next[0], 17, 99};
        pos = {pos[0], pos[0], pos[0]};
        generate(pair, next, pos, 30);
        pair.both([](Session & session) { expect(llama_memory_seq_rm(session.memory(), 0, -1, -1), "removal"); });
        pair.decode({{1, pos[1], random_tokens(40, 5)}});
        report(unified ? "copies, unified" : "copies, split", pair.distance);
    }
}

void saves_and_restores(const Fixture & fixture) {
    for (ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_F16}) {
        for (bool unified : {true, false}) {
            Pair pair = pair_of(fixture, with(type, 2, unified));
            std::vector<llama_token> next;
            std::vector<llama_pos> pos;
            prompts(pair, {80, 30}, next, pos);
            generate(pair, next, pos, 20);
            pair.both([](Session & session) {
                const std::vector<uint8_t> state = session.save(0);
                expect(llama_memory_seq_rm(session.memory(), 1, -1, -1), "removal");
                expect(session.restore(1, state), "restore");
            });
            next[1] = next[0];
            pos[1] = pos[0];
            generate(pair, next, pos, 20);
            const std::string what = std::string("restored, ") + ggml_type_name(type) + (unified ? ", unified" : ", split");
            report(what.c_str(), pair.distance);
        }
    }
}

// A state is the engine's own, whoever wrote it.
void states_are_exchanged_with_the_stock_engine(const Fixture & fixture) {
    for (ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_F16}) {
        Pair pair(Session(fixture.stock, with(type)), Session(fixture.ours, with(type)));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {150}, next, pos);
        const std::vector<uint8_t> stock = pair.stock.save(0), ours = pair.ours.save(0);
        expect(stock.size() == ours.size(), "sizes of states");
        expect(pair.ours.restore(0, stock) && pair.stock.restore(0, ours), "restore");
        generate(pair, next, pos, 20);
        report(type == GGML_TYPE_F16 ? "states exchanged, f16" : "states exchanged, q8_0", pair.distance);
    }
}

void context_shift(const Fixture & fixture) {
    for (ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_F16}) {
        Pair pair = pair_of(fixture, with(type));
        std::vector<llama_token> next;
        std::vector<llama_pos> pos;
        prompts(pair, {200}, next, pos);
        generate(pair, next, pos, 10);
        for (int round = 0; round < 3; round++) {
            pair.both([&](Session & session) {
                expect(llama_memory_can_shift(session.memory()), "context shift");
                expect(llama_memory_seq_rm(session.memory(), 0, 10, 60), "removal");
                llama_memory_seq_add(session.memory(), 0, 60, -1, -50);
            });
            pos[0] -= 50;
            generate(pair, next, pos, 30);
        }
        const std::string what = std::string("shifted three times, ") + ggml_type_name(type);
        report(what.c_str(), pair.distance);
    }
}

// 500 for each of four sequences, moved about meanwhile.
void two_thousand_tokens(const Fixture & fixture) {
    Options options = with(GGML_TYPE_Q8_0, 5, false);
    options.n_ctx = 5 * 768;
    Pair pair = pair_of(fixture, options);
    std::vector<llama_token> next;
    std::vector<llama_pos> pos;
    prompts(pair, {40, 20, 60, 5}, next, pos);
    for (int part = 0; part < 4; part++) {
        generate(pair, next, pos, 125);
        // The first sequence goes to the fifth place and back, the second comes back from a state.
        pair.both([](Session & session) {
            llama_memory_seq_cp(session.memory(), 0, 4, -1, -1);
            llama_memory_seq_rm(session.memory(), 0, -1, -1);
            const std::vector<uint8_t> state = session.save(1);
            llama_memory_seq_rm(session.memory(), 1, -1, -1);
            expect(session.restore(1, state), "restore");
            llama_memory_seq_cp(session.memory(), 4, 0, -1, -1);
            llama_memory_seq_rm(session.memory(), 4, -1, -1);
        });
    }
    report("4 x 500 tokens", pair.distance);
}

// Without flash attention the engine reads the cache back and computes on its own.
void flash_attention_off(const Fixture & fixture) {
    Options options = with(GGML_TYPE_F16);
    options.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    Pair pair = pair_of(fixture, options);
    std::vector<llama_token> next;
    std::vector<llama_pos> pos;
    prompts(pair, {60}, next, pos);
    generate(pair, next, pos, 8);
    report("flash attention off", pair.distance);
}

void mixture_of_experts(const Fixture & fixture) {
    Session session(fixture.moe, with(GGML_TYPE_Q8_0));
    const auto logits = session.decode({{0, 0, random_tokens(100, 3)}});
    expect(logits.size() == 100, "decode");
    Distance self;
    for (const auto & row : logits) {
        self.add(row, row);
    }
    expect(self.finite, "a logit is not finite");
}

void other_cache_types_are_refused(const Fixture & fixture) {
    for (ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_F32}) {
        const size_t said = all_messages().size();
        bool refused = false;
        try {
            const Session session(fixture.ours, with(type));
        } catch (const std::runtime_error &) {
            refused = true;
        }
        expect(refused, "a cache type that cannot be served was taken");
        expect(all_messages().find("choose the cache types q8_0", said) != std::string::npos, "the refusal gives no reason");
    }
}

struct Test {
    const char * name;
    void (*run)(const Fixture & fixture);
};

const Test TESTS[] = {
    {"cache_types", cache_types},
    {"real_savings", real_savings},
    {"long_prompts", long_prompts},
    {"several_sequences", several_sequences},
    {"holes", holes},
    {"sequence_copies", sequence_copies},
    {"saves_and_restores", saves_and_restores},
    {"states_are_exchanged_with_the_stock_engine", states_are_exchanged_with_the_stock_engine},
    {"context_shift", context_shift},
    {"flash_attention_off", flash_attention_off},
    {"mixture_of_experts", mixture_of_experts},
    {"other_cache_types_are_refused", other_cache_types_are_refused},
    {"two_thousand_tokens", two_thousand_tokens},
};

bool chosen(const Test & test, int argc, char ** argv) {
    bool any = argc <= 5;
    for (int i = 5; i < argc; i++) {
        any = any || strcmp(argv[i], test.name) == 0;
    }
    return any;
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: engine BACKENDS MODULE DENSE.gguf MOE.gguf [TEST...]\n");
        return 2;
    }
    start(argv[1], argv[2]);
    int failures = 0;
    try {
        const Fixture fixture = {Model(argv[3], false), Model(argv[3], true), Model(argv[4], true)};
        for (const Test & test : TESTS) {
            if (!chosen(test, argc, argv)) {
                continue;
            }
            printf("%s\n", test.name);
            fflush(stdout);
            const size_t said = all_messages().size();
            try {
                test.run(fixture);
                // The engine goes on after some failures, such as that of a context shift.
                const bool failing = test.run == other_cache_types_are_refused;
                expect(failing || all_messages().find("snapmla: ", said) == std::string::npos,
                       "the module reports a failure");
            } catch (const std::exception & error) {
                printf("  FAILED: %s\n%s\n", error.what(), all_messages().c_str() + said);
                failures++;
            }
        }
    } catch (const std::exception & error) {
        printf("FAILED: %s\n%s\n", error.what(), all_messages().c_str());
        return 1;
    }
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
