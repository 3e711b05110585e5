// Attention masks turned into what the library takes: sequences of cells, with the queries that attend to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snapmla_ggml {

// Consecutive query tokens of which each attends to one cell more than the one before: a causal run. The first
// attends to all cells but the last `q_len - 1`.
struct Run {
    int64_t first_token;
    int64_t q_len;
    std::vector<int64_t> cells;
    // The cells are 0, 1, 2, ... in this order.
    bool is_prefix;
};

// The runs of `n_tokens` rows of `n_cells` F16 numbers, each 0 (attend) or -inf (do not); rows are `stride` bytes
// apart. Throws std::invalid_argument where a number is neither.
std::vector<Run> runs_of_mask(const void * mask, int64_t n_tokens, int64_t n_cells, int64_t stride);

} // namespace snapmla_ggml
