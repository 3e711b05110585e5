// Masks and the runs that they come to.
#include "../src/mask.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

using snapmla_ggml::Run;

static const uint16_t NO = 0xFC00;

static void check(bool holds, int line) {
    if (!holds) {
        printf("mask.cpp:%d does not hold\n", line);
        std::exit(1);
    }
}
#define CHECK(condition) check(condition, __LINE__)

// A mask of rows of `columns` numbers, from the cells that each row attends to.
struct Mask {
    Mask(int64_t columns, const std::vector<std::vector<int64_t>> & rows) : columns(columns), n(rows.size()) {
        numbers.assign(columns * rows.size(), NO);
        for (size_t row = 0; row < rows.size(); row++) {
            for (int64_t cell : rows[row]) {
                numbers[row * columns + cell] = 0;
            }
        }
    }

    std::vector<Run> runs() const {
        return snapmla_ggml::runs_of_mask(numbers.data(), static_cast<int64_t>(n), columns, columns * 2);
    }

    int64_t columns;
    size_t n;
    std::vector<uint16_t> numbers;
};

static void a_causal_prompt_is_one_run() {
    const std::vector<Run> runs = Mask(256, {{0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}}).runs();
    CHECK(runs.size() == 1 && runs[0].first_token == 0 && runs[0].q_len == 3);
    CHECK(runs[0].cells == std::vector<int64_t>({0, 1, 2, 3, 4}) && runs[0].is_prefix);
}

static void a_hole_is_no_prefix() {
    const std::vector<Run> runs = Mask(128, {{0, 1, 70}, {0, 1, 70, 2}}).runs();
    CHECK(runs.size() == 1 && runs[0].q_len == 2 && !runs[0].is_prefix);
    CHECK(runs[0].cells == std::vector<int64_t>({0, 1, 70, 2}));
    CHECK(!Mask(64, {{1, 2}}).runs()[0].is_prefix);
}

// The cells in the order in which they were attended to count up only if no later one went before.
static void order_decides_what_a_prefix_is() {
    CHECK(!Mask(64, {{0, 2}, {0, 1, 2}}).runs()[0].is_prefix);
    CHECK(Mask(64, {{0, 1}, {0, 1, 2}}).runs()[0].is_prefix);
}

static void other_sequences_begin_runs_of_their_own() {
    const std::vector<Run> runs = Mask(64, {{0, 1}, {2, 3}, {2, 3, 4}, {2, 3, 4}, {2, 4}}).runs();
    CHECK(runs.size() == 4);
    CHECK(runs[1].first_token == 1 && runs[1].q_len == 2 && runs[1].cells.size() == 3);
    CHECK(runs[2].first_token == 3 && runs[2].q_len == 1);
    CHECK(runs[3].first_token == 4 && runs[3].cells == std::vector<int64_t>({2, 4}));
}

static void a_row_may_attend_to_nothing() {
    const std::vector<Run> runs = Mask(200, {{}, {5}, {}}).runs();
    CHECK(runs.size() == 2 && runs[0].q_len == 2 && runs[0].cells == std::vector<int64_t>({5}));
    CHECK(runs[1].q_len == 1 && runs[1].cells.empty() && runs[1].is_prefix);
}

static void minus_zero_attends_and_a_bias_is_refused() {
    Mask mask(64, {{0}, {0, 1}});
    mask.numbers[0] = 0x8000;
    CHECK(mask.runs().size() == 1);
    for (uint16_t bias : {0x3C00, 0xBC00, 0xFBFF, 0x7C00, 0x7E00}) {
        for (size_t at : {size_t(3), size_t(64 + 50)}) {
            Mask biased(64, {{0}, {0, 1}});
            biased.numbers[at] = bias;
            bool refused = false;
            try {
                biased.runs();
            } catch (const std::invalid_argument &) {
                refused = true;
            }
            CHECK(refused);
        }
    }
}

int main() {
    a_causal_prompt_is_one_run();
    a_hole_is_no_prefix();
    order_decides_what_a_prefix_is();
    other_sequences_begin_runs_of_their_own();
    a_row_may_attend_to_nothing();
    minus_zero_attends_and_a_bias_is_refused();
    return 0;
}
