#include "mask.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace snapmla_ggml {

static const uint16_t MINUS_INFINITY = 0xFC00;

// Cells looked at together, where it is likely that all are alike.
static const int64_t BLOCK = 64;

static bool attends(uint16_t number) {
    if ((number & 0x7FFF) == 0) {
        return true;
    }
    if (number == MINUS_INFINITY) {
        return false;
    }
    throw std::invalid_argument("the attention mask holds a number that is neither 0 nor -inf: a bias is not served");
}

static bool all_masked(const uint16_t * row, int64_t n) {
    uint16_t differs = 0;
    for (int64_t i = 0; i < n; i++) {
        differs |= row[i] ^ MINUS_INFINITY;
    }
    return differs == 0;
}

static std::vector<int64_t> cells_of_row(const uint16_t * row, int64_t n_cells) {
    std::vector<int64_t> cells;
    for (int64_t from = 0; from < n_cells; from += BLOCK) {
        const int64_t to = std::min(from + BLOCK, n_cells);
        if (!all_masked(row + from, to - from)) {
            for (int64_t cell = from; cell < to; cell++) {
                if (attends(row[cell])) {
                    cells.push_back(cell);
                }
            }
        }
    }
    return cells;
}

// The one cell that `row` attends to and `before` does not, when there is no other difference; -1 otherwise.
static int64_t added_cell(const uint16_t * before, const uint16_t * row, int64_t n_cells) {
    int64_t added = -1;
    for (int64_t from = 0; from < n_cells; from += BLOCK) {
        const int64_t to = std::min(from + BLOCK, n_cells);
        if (memcmp(before + from, row + from, (to - from) * sizeof(uint16_t)) == 0) {
            continue;
        }
        for (int64_t cell = from; cell < to; cell++) {
            if (attends(before[cell]) != attends(row[cell])) {
                if (added >= 0 || !attends(row[cell])) {
                    return -1;
                }
                added = cell;
            }
        }
    }
    return added;
}

static bool counts_up(const std::vector<int64_t> & cells) {
    return cells.empty() ||
           (cells.front() == 0 && cells.back() == static_cast<int64_t>(cells.size()) - 1 &&
            std::is_sorted(cells.begin(), cells.end()));
}

std::vector<Run> runs_of_mask(const void * mask, int64_t n_tokens, int64_t n_cells, int64_t stride) {
    const auto row = [&](int64_t token) {
        return reinterpret_cast<const uint16_t *>(static_cast<const char *>(mask) + token * stride);
    };
    std::vector<Run> runs;
    for (int64_t token = 0; token < n_tokens; token++) {
        const int64_t added = token == 0 ? -1 : added_cell(row(token - 1), row(token), n_cells);
        if (added >= 0) {
            runs.back().cells.push_back(added);
            runs.back().q_len++;
        } else {
            runs.push_back({token, 1, cells_of_row(row(token), n_cells), false});
        }
    }
    for (Run & run : runs) {
        run.is_prefix = counts_up(run.cells);
    }
    return runs;
}

} // namespace snapmla_ggml
