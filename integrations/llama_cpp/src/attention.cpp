#include "cache.h"
#include "mask.h"
#include "ops.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace snapmla_ggml {

// Cells that the lists of one call may name in all: 16 MiB of them.
static const int64_t MOST_LISTED = 1 << 21;

static float parameter(const ggml_tensor * op, int i) {
    float value;
    memcpy(&value, op->op_params + i, sizeof value);
    return value;
}

bool attention_supported(const ggml_tensor * op) {
    const ggml_tensor * q = op->src[0];
    const ggml_tensor * k = op->src[1];
    const ggml_tensor * v = op->src[2];
    const ggml_tensor * mask = op->src[3];
    const bool keys = in_cache(k) && k->ne[0] == ROW && k->ne[2] == 1 && offset_in_row(k) == 0 &&
                      k->nb[1] == nominal_row_bytes(root_of(k)) && k->nb[3] % k->nb[1] == 0;
    // Values are the first numbers of the keys.
    const bool values = keys && root_of(v) == root_of(k) && v->ne[0] == CONTENT && v->ne[1] == k->ne[1] &&
                        v->view_offs == k->view_offs && v->nb[1] == k->nb[1] && v->nb[3] == k->nb[3];
    const bool queries = dtype_of(q->type) != 0 && q->ne[0] == ROW && q->nb[0] == ggml_type_size(q->type) &&
                         q->ne[2] <= SNAPMLA_MAX_HEADS && q->ne[3] == k->ne[3];
    const bool masked = mask != nullptr && mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(uint16_t) &&
                        mask->ne[2] == 1 && (mask->ne[3] == 1 || mask->ne[3] == k->ne[3]);
    const bool plain = parameter(op, 1) == 0.0f && parameter(op, 2) == 0.0f && op->src[4] == nullptr;
    return values && queries && masked && plain && op->type == GGML_TYPE_F32;
}

namespace {

// One sequence of a call: a run of query tokens, which are counted over all streams.
struct Sequence {
    Run run;
    // Slot of cell 0 of the run's stream.
    int64_t first_slot;
};

// The sequences of one call, as the library takes them.
struct Batch {
    std::vector<int32_t> cu_q_lens, seq_lens, block_table;
    std::vector<int64_t> slots;
    int64_t columns = 0;
    int64_t max_q_len = 0;
    int64_t max_len = 0;

    Batch(const Sequence * begin, const Sequence * end) {
        bool in_pages = true;
        cu_q_lens.push_back(static_cast<int32_t>(begin->run.first_token));
        for (const Sequence * sequence = begin; sequence != end; sequence++) {
            const Run & run = sequence->run;
            cu_q_lens.push_back(static_cast<int32_t>(run.first_token + run.q_len));
            seq_lens.push_back(static_cast<int32_t>(run.cells.size()));
            max_q_len = std::max(max_q_len, run.q_len);
            max_len = std::max(max_len, static_cast<int64_t>(run.cells.size()));
            in_pages = in_pages && run.is_prefix && sequence->first_slot % PAGE == 0;
        }
        columns = in_pages ? (max_len + PAGE - 1) / PAGE : max_len;
        for (const Sequence * sequence = begin; sequence != end; sequence++) {
            in_pages ? put_pages(*sequence) : put_slots(*sequence);
        }
    }

    void put_pages(const Sequence & sequence) {
        for (int64_t column = 0; column < columns; column++) {
            block_table.push_back(static_cast<int32_t>(sequence.first_slot / PAGE + column));
        }
    }

    void put_slots(const Sequence & sequence) {
        for (int64_t cell : sequence.run.cells) {
            slots.push_back(sequence.first_slot + cell);
        }
        slots.resize(slots.size() + columns - sequence.run.cells.size());
    }
};

} // namespace

static void attend(Engine & engine, const snapmla::Cache & cache, const ggml_tensor * op, int64_t stream, const Batch & batch) {
    const ggml_tensor * q = op->src[0];
    const char * queries = static_cast<const char *>(q->data) + stream * q->nb[3];
    snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
    params.flags = SNAPMLA_DECODE_CAUSAL;
    params.batch = static_cast<uint32_t>(batch.seq_lens.size());
    params.q_len = static_cast<uint32_t>(batch.max_q_len);
    params.num_heads = static_cast<uint32_t>(q->ne[2]);
    params.softmax_scale = parameter(op, 0);
    params.q_dtype = dtype_of(q->type);
    params.q_content = queries;
    params.q_content_token_stride = static_cast<int64_t>(q->nb[1]);
    params.q_content_head_stride = static_cast<int64_t>(q->nb[2]);
    params.q_rope = queries + CONTENT * q->nb[0];
    params.q_rope_token_stride = params.q_content_token_stride;
    params.q_rope_head_stride = params.q_content_head_stride;
    params.cu_q_lens = batch.cu_q_lens.data();
    params.seq_lens = batch.seq_lens.data();
    if (batch.slots.empty()) {
        params.block_table = batch.block_table.data();
        params.max_pages = static_cast<uint32_t>(batch.columns);
    } else {
        params.slots = batch.slots.data();
        params.max_slots = static_cast<uint32_t>(batch.columns);
    }
    params.out_dtype = SNAPMLA_DTYPE_F32;
    params.out = static_cast<char *>(op->data) + stream * op->nb[3];
    params.out_token_stride = static_cast<int64_t>(op->nb[2]);
    params.out_head_stride = static_cast<int64_t>(op->nb[1]);

    snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
    limits.max_batch = params.batch;
    limits.max_q_len = params.q_len;
    limits.max_heads = params.num_heads;
    limits.max_seq_len = static_cast<uint32_t>(std::max<int64_t>(batch.max_len, 1));
    params.max_seq_len = limits.max_seq_len;
    params.workspace_size = engine.context().decode_workspace_size(limits);
    params.workspace = engine.workspace(params.workspace_size);
    engine.context().decode(cache, params);
}

static std::vector<Sequence> sequences_of(const ggml_tensor * op, int64_t first_stream, int64_t n_streams) {
    const ggml_tensor * q = op->src[0];
    const ggml_tensor * k = op->src[1];
    const ggml_tensor * mask = op->src[3];
    std::vector<Sequence> sequences;
    for (int64_t stream = first_stream; stream < first_stream + n_streams; stream++) {
        const char * rows = static_cast<const char *>(mask->data) + (mask->ne[3] == 1 ? 0 : stream * mask->nb[3]);
        const int64_t first_slot = first_cell(k) + stream * static_cast<int64_t>(k->nb[3] / k->nb[1]);
        for (Run & run : runs_of_mask(rows, q->ne[1], k->ne[1], static_cast<int64_t>(mask->nb[1]))) {
            run.first_token += (stream - first_stream) * q->ne[1];
            sequences.push_back({std::move(run), first_slot});
        }
    }
    return sequences;
}

void attention(Engine & engine, ggml_tensor * op) {
    const ggml_tensor * q = op->src[0];
    const snapmla::Cache cache = open_cache(engine.context(), root_of(op->src[1]));
    // One call for all streams where their queries lie one after another, as llama.cpp has them.
    const bool together = q->nb[3] == q->nb[1] * q->ne[1];
    const int64_t step = together ? q->ne[3] : 1;
    for (int64_t stream = 0; stream < q->ne[3]; stream += step) {
        const std::vector<Sequence> sequences = sequences_of(op, stream, step);
        size_t begin = 0, end = 0;
        while (begin < sequences.size()) {
            int64_t longest = 0;
            do {
                longest = std::max(longest, static_cast<int64_t>(sequences[end].run.cells.size()));
                end++;
            } while (end < sequences.size() && longest * static_cast<int64_t>(end - begin + 1) <= MOST_LISTED);
            attend(engine, cache, op, stream, Batch(&sequences[begin], &sequences[0] + end));
            begin = end;
        }
    }
}

} // namespace snapmla_ggml
