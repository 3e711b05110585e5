// Times attention over a cache of each kind in turns, in one process: llama.cpp's own over F16 and Q8_0, and the module's.
#include "attention.h"
#include "options.h"
#include "snapmla.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace {

// What a shape came to.
struct Result {
    Shape shape;
    size_t turns;
    // Medians, in milliseconds.
    double f16, q8_0, module;
    // Of the module's output to that over F16.
    double relative_l2;
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

Result measure(const Options & options, const Shape & shape) {
    const Inputs inputs(shape);
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t ours = ggml_backend_dev_by_name("SnapMLA");
    Attention kinds[3] = {{cpu, options.threads, GGML_TYPE_F16, inputs},
                          {cpu, options.threads, GGML_TYPE_Q8_0, inputs},
                          {ours, options.threads, GGML_TYPE_Q8_0, inputs}};
    std::vector<double> times[3];
    double spent = 0, turn = 0;
    while (times[0].empty() || (times[0].size() < static_cast<size_t>(options.turns) && spent + turn < options.seconds * 1e3)) {
        double took[3];
        turn = 0;
        for (int kind = 0; kind < 3; kind++) {
            turn += took[kind] = kinds[kind].milliseconds();
        }
        // A short first turn finds memory that nobody has touched yet.
        const bool warm = spent > 0 || turn > 2e3;
        spent += turn;
        for (int kind = 0; warm && kind < 3; kind++) {
            times[kind].push_back(took[kind]);
        }
    }
    return {shape,           times[0].size(),  median(times[0]),
            median(times[1]), median(times[2]), relative(kinds[0].result(), kinds[2].result())};
}

// How many times as fast as over F16 and over Q8_0 the module must be.
struct Bars {
    double f16, q8_0;
};

Bars bars(const std::string & isa, const Shape & shape) {
    if (shape.queries > 1 || isa == "portable") {
        return {1, 1};
    }
    return isa == "avx512_bf16" ? Bars{3, 5} : Bars{1.5, 1};
}

// False where something is not as it must be, which is then said.
bool passes(const Options & options, const std::string & isa, const Result & result) {
    if (!(result.relative_l2 < 0.08)) {
        fprintf(stderr, "the module's result differs: relative L2 %g\n", result.relative_l2);
        return false;
    }
    const Bars wanted = bars(isa, result.shape);
    const double f16 = result.f16 / result.module, q8_0 = result.q8_0 / result.module;
    if (options.check && (f16 < wanted.f16 || q8_0 < wanted.q8_0)) {
        fprintf(stderr, "too slow: wanted are %gx of F16 and %gx of Q8_0\n", wanted.f16, wanted.q8_0);
        return false;
    }
    return true;
}

std::vector<Shape> shapes(const Options & options) {
    if (options.quick) {
        return {{1, 16, 512}, {1, 128, 256}, {64, 16, 512}};
    }
    std::vector<Shape> shapes;
    for (int64_t queries : {1, 512}) {
        for (int64_t heads : {16, 128}) {
            for (int64_t cells : {1024, 8192, 32768}) {
                const bool wanted = options.queries == 0 || queries == options.queries;
                if (wanted && (options.most_cells == 0 || cells <= options.most_cells)) {
                    shapes.push_back({queries, heads, cells});
                }
            }
        }
    }
    return shapes;
}

void load(const Options & options) {
    if (!options.isa.empty()) {
        setenv("SNAPMLA_MAX_CPU_ISA", options.isa.c_str(), 1);
    }
    if (options.engine.empty()) {
        ggml_backend_load_all_from_path(options.backends.c_str());
    } else if (ggml_backend_load((options.backends + "/libggml-cpu-" + options.engine + ".so").c_str()) == nullptr) {
        throw std::runtime_error("this machine cannot run llama.cpp's CPU library " + options.engine);
    }
    if (ggml_backend_load(options.module.c_str()) == nullptr) {
        throw std::runtime_error("the module does not load");
    }
}

// The instruction set that the module's library uses.
std::string library_isa() {
    snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
    params.backend = SNAPMLA_BACKEND_CPU;
    params.cpu_threads = 1;
    return snapmla::Context(params).describe().name;
}

int sweep(const Options & options) {
    load(options);
    const std::string isa = library_isa(), engine = options.engine.empty() ? "best" : options.engine;
    if (!options.isa.empty() && isa != options.isa) {
        throw std::runtime_error("this machine has no " + options.isa + ", only " + isa);
    }
    std::unique_ptr<FILE, int (*)(FILE *)> csv(options.csv.empty() ? nullptr : fopen(options.csv.c_str(), "w"), fclose);
    if (!options.csv.empty() && !csv) {
        throw std::runtime_error("cannot write " + options.csv);
    }
    if (csv) {
        fprintf(csv.get(), "queries,heads,cells,threads,isa,engine,turns,f16_ms,q8_0_ms,module_ms,over_f16,over_q8_0,relative_l2\n");
    }
    printf("%d threads, %s; llama.cpp's CPU library: %s\n", options.threads, isa.c_str(), engine.c_str());
    printf("queries  heads   cells  turns     f16 ms    q8_0 ms  module ms   over f16  over q8_0  relative L2 to f16\n");
    bool passed = true;
    for (const Shape & shape : shapes(options)) {
        const Result r = measure(options, shape);
        const long long queries = shape.queries, heads = shape.heads, cells = shape.cells;
        printf("%7lld  %5lld  %6lld  %5zu  %9.2f  %9.2f  %9.2f  %8.2fx  %8.2fx  %.4f\n", queries, heads, cells, r.turns, r.f16,
               r.q8_0, r.module, r.f16 / r.module, r.q8_0 / r.module, r.relative_l2);
        fflush(stdout);
        if (csv) {
            fprintf(csv.get(), "%lld,%lld,%lld,%d,%s,%s,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f\n", queries, heads, cells, options.threads,
                    isa.c_str(), engine.c_str(), r.turns, r.f16, r.q8_0, r.module, r.f16 / r.module, r.q8_0 / r.module,
                    r.relative_l2);
            fflush(csv.get());
        }
        passed = passes(options, isa, r) && passed;
    }
    return passed ? 0 : 1;
}

} // namespace

int main(int argc, char ** argv) {
    try {
        return sweep(options_of(argc, argv));
    } catch (const std::exception & error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
