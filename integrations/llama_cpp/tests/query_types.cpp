// Queries of each type that the module claims, against each other and against the CPU backend's attention:
//
//     query_types BACKENDS MODULE
#include "bench/attention.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

static const double MOST_DISTANCE = 0.1;

// BF16 and F16 both hold what is left.
static void round(std::vector<float> & numbers) {
    for (float & number : numbers) {
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        bits &= 0xFFFF0000u;
        memcpy(&number, &bits, sizeof bits);
        // Below this F16 has fewer bits.
        if (std::fabs(number) < 6.2e-5f) {
            number = 0.0f;
        }
    }
}

static double relative_l2(const std::vector<float> & a, const std::vector<float> & b) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < a.size(); i++) {
        error += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
        norm += double(b[i]) * b[i];
    }
    return std::sqrt(error / norm);
}

static int failures = 0;

static void expect(bool holds, const char * what, const Shape & shape, ggml_type type) {
    if (!holds) {
        printf("%s: %lld queries, %lld heads, %s\n", what, (long long) shape.queries, (long long) shape.heads, ggml_type_name(type));
        failures++;
    }
}

static void compare(ggml_backend_dev_t cpu, ggml_backend_dev_t module, const Shape & shape) {
    Inputs inputs(shape);
    round(inputs.queries);
    const auto result = [&](ggml_backend_dev_t device, ggml_type cache, ggml_type queries) {
        Attention attention(device, 2, cache, inputs, queries);
        expect(ggml_backend_dev_supports_op(device, attention.operation()), "not claimed", shape, queries);
        attention.milliseconds();
        return attention.result();
    };
    const auto stock = result(cpu, GGML_TYPE_F16, GGML_TYPE_F32);
    const auto wide = result(module, GGML_TYPE_Q8_0, GGML_TYPE_F32);
    expect(relative_l2(wide, stock) < MOST_DISTANCE, "far from the CPU backend's", shape, GGML_TYPE_F32);
    for (ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16}) {
        expect(result(module, GGML_TYPE_Q8_0, type) == wide, "other bits than with F32 queries", shape, type);
    }
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: query_types BACKENDS MODULE\n");
        return 2;
    }
    ggml_backend_load_all_from_path(argv[1]);
    if (ggml_backend_load(argv[2]) == nullptr) {
        fprintf(stderr, "the module does not load\n");
        return 1;
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t module = ggml_backend_dev_by_name("SnapMLA");
    try {
        for (const Shape & shape : {Shape{1, 16, 300}, Shape{3, 128, 1000}, Shape{70, 5, 200}, Shape{512, 2, 512}}) {
            compare(cpu, module, shape);
        }
    } catch (const std::exception & error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    printf("query types: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
