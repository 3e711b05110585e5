// integrations/tensorrt_llm, driven by fields laid out as TensorRT-LLM has them: a pool [blocks][layers][bytes], offsets
// [batch][2][blocks] that count a layer's part of a block, queries and latents in rows of 576.

#include "snapmla_trtllm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"
#include "reference.h"

namespace {

constexpr int32_t LAYERS = 3, BLOCKS = 12, PAGE = 32, BATCH = 2, COLUMNS = 4, HEADS = 5, Q_LEN = 2;
constexpr int32_t ROW = CONTENT + ROPE;

void expect(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    std::fprintf(stderr, "%s\n", snapmla_last_error_message());
    std::exit(1);
  }
}

std::vector<float> made_up(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  fill(numbers.data(), count, &seed);
  return numbers;
}

} // namespace

int main() {
  snapmla_context_params context_params = SNAPMLA_CONTEXT_PARAMS_INIT;
  context_params.backend = SNAPMLA_BACKEND_CPU;
  snapmla_context *context = nullptr;
  expect(snapmla_context_create(&context_params, &context));

  const uint64_t pool_bytes = uint64_t(BLOCKS) * LAYERS * uint64_t(snapmla_trtllm::blockBytes(PAGE));
  void *pool = std::aligned_alloc(256, pool_bytes);
  CHECK(pool_bytes % 256 == 0 && pool != nullptr);
  std::memset(pool, 255, pool_bytes);

  // Block b's K offset is b * LAYERS; V's plane and the columns past a sequence's end are never looked at.
  const int32_t blocks[BATCH][COLUMNS] = {{11, 4, 7, 2}, {0, 9, 5, -1}};
  const int32_t lengths[BATCH] = {100, 70};
  std::vector<int32_t> offsets(BATCH * 2 * COLUMNS, -1);
  for (int b = 0; b < BATCH; b++) {
    for (int c = 0; c < COLUMNS; c++) {
      offsets[size_t(b * 2 * COLUMNS + c)] = blocks[b][c] * LAYERS;
      CHECK(blocks[b][c] < 0 || snapmla_trtllm::blockOf(blocks[b][c] * LAYERS, LAYERS) == blocks[b][c]);
    }
  }
  const int32_t swapped_out[1] = {int32_t(snapmla_trtllm::kSecondaryPool | 6u)};
  CHECK(snapmla_trtllm::slotOf(swapped_out, 3, PAGE) == -1 && snapmla_trtllm::blockOf(swapped_out[0], LAYERS) == 2);

  std::vector<int64_t> slots;
  for (int b = 0; b < BATCH; b++) {
    for (int32_t position = 0; position < lengths[b]; position++) {
      slots.push_back(snapmla_trtllm::slotOf(&offsets[size_t(b * 2 * COLUMNS)], position, PAGE));
    }
  }

  uint64_t workspace_size = 0;
  expect(snapmla_trtllm::workspaceSize(context, BATCH, Q_LEN, HEADS, COLUMNS * PAGE, &workspace_size));
  void *workspace = workspace_size == 0 ? nullptr : std::aligned_alloc(256, (workspace_size + 255) / 256 * 256);

  // All layers are filled before any is read: none may have written over another.
  std::vector<snapmla_cache *> layers(LAYERS);
  for (int32_t layer = 0; layer < LAYERS; layer++) {
    expect(snapmla_trtllm::openLayer(context, pool, pool_bytes, LAYERS, layer, PAGE, nullptr, &layers[size_t(layer)]));
    const std::vector<float> latent = made_up(slots.size() * ROW, 10 + uint32_t(layer));
    expect(snapmla_trtllm::append(context, layers[size_t(layer)], SNAPMLA_DTYPE_F32, latent.data(), slots.data(),
                                  int64_t(slots.size()), nullptr));
  }

  for (int32_t layer = 0; layer < LAYERS; layer++) {
    const std::vector<float> latent = made_up(slots.size() * ROW, 10 + uint32_t(layer));
    const std::vector<float> queries = made_up(BATCH * Q_LEN * HEADS * ROW, 77);
    std::vector<float> out(BATCH * Q_LEN * HEADS * CONTENT);
    snapmla_trtllm::Generation fields;
    fields.dtype = SNAPMLA_DTYPE_F32;
    fields.q_buf = queries.data();
    fields.context_buf = out.data();
    fields.block_offsets = offsets.data();
    fields.cache_seq_lens = lengths;
    fields.workspace = workspace;
    fields.workspace_size = workspace_size;
    fields.batch_size = BATCH;
    fields.acc_q_len = BATCH * Q_LEN;
    fields.head_num = HEADS;
    fields.max_blocks = COLUMNS;
    fields.host_bmm1_scale = 0.0721688f;
    expect(snapmla_trtllm::generation(context, layers[size_t(layer)], fields, nullptr));

    for (int row = 0; row < BATCH * Q_LEN * HEADS; row++) {
      const int b = row / (Q_LEN * HEADS), i = row / HEADS % Q_LEN;
      double query[ROW], wanted[CONTENT];
      for (int d = 0; d < ROW; d++) {
        query[d] = double(queries[size_t(row * ROW + d)]);
      }
      attend(wanted, query, &latent[size_t(b == 0 ? 0 : lengths[0] * ROW)], lengths[b] - Q_LEN + i + 1, 0.0721688);
      // Against the unquantised model: three roundings to E4M3.
      CHECK(distance(&out[size_t(row * CONTENT)], wanted, CONTENT) < 0.1);
    }
  }

  for (snapmla_cache *layer : layers) {
    expect(snapmla_cache_destroy(layer));
  }
  expect(snapmla_context_destroy(context));
  std::free(workspace);
  std::free(pool);
  return 0;
}
