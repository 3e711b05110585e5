#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char USAGE[] =
    "usage: attention BACKENDS MODULE [OPTION...]\n"
    "  --csv FILE      also writes the table there\n"
    "  --check         fails where the module is slower than it must be\n"
    "  --quick         small shapes, to see that everything works; times mean little\n"
    "  --isa NAME      most instructions that either side may use: portable, avx2, avx512, avx512_bf16\n"
    "  --engine NAME   llama.cpp's libggml-cpu-NAME.so, instead of the one that --isa or the machine implies\n"
    "  --queries N     only the shapes with so many: 1 or 512\n"
    "  --most-cells N  only the shapes with no more\n"
    "  --threads N     of either side (2)\n"
    "  --turns N       of a shape, at most (9)\n"
    "  --seconds N     after which a shape gets no further turn (60)\n";

[[noreturn]] static void refuse(const char * what, const char * argument) {
    fprintf(stderr, "%s %s\n%s", what, argument, USAGE);
    exit(2);
}

// llama.cpp's CPU library for a machine with no more than an instruction set of ours.
static std::string engine_for(const std::string & isa) {
    const char * const known[][2] = {{"portable", "sse42"}, {"avx2", "haswell"}, {"avx512", "icelake"}, {"avx512_bf16", "zen4"}};
    for (const auto & pair : known) {
        if (isa == pair[0]) {
            return pair[1];
        }
    }
    refuse("no instruction set", isa.c_str());
}

Options options_of(int argc, char ** argv) {
    if (argc < 3) {
        refuse("", "");
    }
    Options options;
    options.backends = argv[1];
    options.module = argv[2];
    for (int i = 3; i < argc; i++) {
        const char * name = argv[i];
        const auto is = [&](const char * known) { return strcmp(name, known) == 0; };
        const auto value = [&] {
            if (++i == argc) {
                refuse("no value after", name);
            }
            return argv[i];
        };
        if (is("--help")) {
            fputs(USAGE, stdout);
            exit(0);
        } else if (is("--csv")) {
            options.csv = value();
        } else if (is("--isa")) {
            options.isa = value();
        } else if (is("--engine")) {
            options.engine = value();
        } else if (is("--queries")) {
            options.queries = atoi(value());
        } else if (is("--most-cells")) {
            options.most_cells = atoi(value());
        } else if (is("--threads")) {
            options.threads = atoi(value());
        } else if (is("--turns")) {
            options.turns = atoi(value());
        } else if (is("--seconds")) {
            options.seconds = atof(value());
        } else if (is("--check")) {
            options.check = true;
        } else if (is("--quick")) {
            options.quick = true;
        } else {
            refuse("no option", name);
        }
    }
    if (!options.isa.empty() && options.engine.empty()) {
        options.engine = engine_for(options.isa);
    }
    return options;
}
