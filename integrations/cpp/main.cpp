// An engine's use of paged_cache.hpp on the CPU backend: three layers, a shared prompt, a preemption. Whatever happens to a
// sequence's blocks, its attention stays the same bit for bit.

#include "paged_cache.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

namespace {

constexpr uint32_t PAGE = 16, LAYERS = 3, HEADS = 8;
constexpr int32_t BLOCKS = 24;
using Floats = std::vector<float>;

struct Free {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(uint64_t bytes) { return Memory(std::aligned_alloc(256, (bytes + 255) / 256 * 256)); }

Floats made_up(size_t count, uint32_t seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> range(-1, 1);
  Floats numbers(count);
  for (float &number : numbers) {
    number = range(random);
  }
  return numbers;
}

class Engine {
public:
  Engine()
      : context_(SNAPMLA_BACKEND_CPU), memory_(allocate(engine::PagedCache::bytes(PAGE, LAYERS, BLOCKS))),
        cache_(context_, PAGE, LAYERS, BLOCKS, memory_.get(),
               [](void *to, const void *from, size_t bytes) { std::memcpy(to, from, bytes); }) {
    snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
    limits.max_batch = 4;
    limits.max_heads = HEADS;
    limits.max_seq_len = PAGE * BLOCKS;
    workspace_size_ = context_.decode_workspace_size(limits);
    workspace_ = allocate(workspace_size_);
  }

  engine::PagedCache &cache() { return cache_; }

  // The latents of `count` tokens, in every layer; `seed` stands for what the tokens are.
  void append(engine::Sequence &sequence, int32_t count, uint32_t seed) {
    const std::vector<int64_t> slots = cache_.extend(sequence, count);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
      const Floats latent = made_up(count * 576, seed * LAYERS + layer);
      snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
      params.layer = static_cast<int32_t>(layer);
      params.dtype = SNAPMLA_DTYPE_F32;
      params.num_tokens = count;
      params.content = latent.data(); // rows of 576: content, then rope
      params.rope = latent.data() + SNAPMLA_CONTENT_DIM;
      params.content_stride = params.rope_stride = 576 * sizeof(float);
      params.slots = slots.data();
      context_.k_append(cache_.handle(), params);
    }
  }

  // Attention of one query a sequence in every layer: [LAYERS][sequences][HEADS][512].
  Floats attend(const std::vector<const engine::Sequence *> &sequences) {
    const engine::PagedCache::Batch batch = engine::PagedCache::batch(sequences);
    const size_t layer_size = sequences.size() * HEADS * SNAPMLA_CONTENT_DIM;
    Floats out(LAYERS * layer_size);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
      // Every sequence asks the same, so that answers can be compared.
      const Floats query = made_up(HEADS * 576, 99 + layer);
      Floats queries;
      for (size_t row = 0; row < sequences.size(); row++) {
        queries.insert(queries.end(), query.begin(), query.end());
      }
      snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
      params.layer = static_cast<int32_t>(layer);
      params.batch = static_cast<uint32_t>(sequences.size());
      params.num_heads = HEADS;
      params.softmax_scale = 0.0721688f;
      params.q_dtype = params.out_dtype = SNAPMLA_DTYPE_F32;
      params.q_content = queries.data();
      params.q_rope = queries.data() + SNAPMLA_CONTENT_DIM;
      params.q_content_head_stride = params.q_rope_head_stride = 576 * sizeof(float);
      params.q_content_token_stride = params.q_rope_token_stride = HEADS * 576 * sizeof(float);
      params.q_content_batch_stride = params.q_rope_batch_stride = HEADS * 576 * sizeof(float);
      params.seq_lens = batch.seq_lens.data();
      params.block_table = batch.block_table.data();
      params.max_pages = batch.max_pages;
      params.out = out.data() + layer * layer_size;
      params.workspace = workspace_size_ == 0 ? nullptr : workspace_.get();
      params.workspace_size = workspace_size_;
      context_.decode(cache_.handle(), params);
    }
    return out;
  }

private:
  snapmla::Context context_;
  Memory memory_, workspace_;
  engine::PagedCache cache_;
  uint64_t workspace_size_ = 0;
};

void require(bool holds, const char *what) {
  if (!holds) {
    throw std::runtime_error(what);
  }
}

void serve() {
  Engine engine;
  engine::PagedCache &cache = engine.cache();

  // One prompt, two continuations of it, and the second one once more without sharing.
  engine::Sequence first, alone;
  engine.append(first, 40, 1);
  engine::Sequence second = cache.fork(first);
  require(second.blocks[1] == first.blocks[1] && second.blocks[2] != first.blocks[2], "full blocks are shared");
  engine.append(first, 5, 2);
  engine.append(second, 20, 3);
  engine.append(alone, 40, 1);
  engine.append(alone, 20, 3);
  const Floats shared = engine.attend({&second}), unshared = engine.attend({&alone});
  require(shared == unshared, "a shared prefix attends as one of its own");
  require(engine.attend({&first}) != shared, "and the continuations differ");

  // Preempted, its blocks overwritten by others, and brought back elsewhere.
  const std::vector<int32_t> before = second.blocks;
  const std::vector<char> saved = cache.swap_out(second);
  engine::Sequence other;
  engine.append(other, 50, 4);
  cache.swap_in(second, saved);
  require(second.blocks != before && engine.attend({&second}) == shared, "a preempted sequence goes on where it was");

  try {
    engine.append(other, PAGE * BLOCKS, 5);
    require(false, "blocks run out");
  } catch (const std::runtime_error &error) {
    require(std::strstr(error.what(), "preempt") != nullptr, "with a word of what to do");
  }
  for (engine::Sequence *sequence : {&first, &second, &alone, &other}) {
    cache.drop(*sequence);
  }
  require(cache.free_blocks() == BLOCKS, "every block comes back");
}

} // namespace

int main() {
  try {
    serve();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
