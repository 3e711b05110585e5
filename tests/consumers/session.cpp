// A C++ program's session on the CPU backend through snapmla.hpp: owners, exceptions, and the numbers of one decode.
#include "snapmla.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.h"
#include "reference.h"

static_assert(!std::is_copy_constructible<snapmla::Context>::value, "one owner");
static_assert(std::is_nothrow_move_constructible<snapmla::Context>::value, "moves never fail");
static_assert(std::is_nothrow_move_assignable<snapmla::Cache>::value, "moves never fail");

namespace {

constexpr int tokens = 100, heads = 2, page_size = 64;

/// Memory of the alignment that caches, quantised queries and workspaces need.
class Memory {
public:
  explicit Memory(std::uint64_t bytes) : bytes_(bytes), raw_(static_cast<std::size_t>(bytes) + 256) {}
  void *get() {
    const auto address = reinterpret_cast<std::uintptr_t>(raw_.data());
    return raw_.data() + (256 - address % 256) % 256;
  }
  std::uint64_t size() const { return bytes_; }

private:
  std::uint64_t bytes_;
  std::vector<unsigned char> raw_;
};

void owners() {
  snapmla::Context one(SNAPMLA_BACKEND_CPU);
  snapmla_context *raw = one.get();
  snapmla::Context two(std::move(one));
  CHECK(!one && two.get() == raw);
  one = std::move(two);
  CHECK(one.get() == raw && !two);
  snapmla::Context three = snapmla::Context::adopt(one.release());
  CHECK(three.describe().backend == SNAPMLA_BACKEND_CPU);
  three.reset();
  CHECK(snapmla_context_destroy(raw) == SNAPMLA_STATUS_INVALID_HANDLE);
}

void failures() {
  const snapmla::Context context(SNAPMLA_BACKEND_CPU);
  snapmla_support_query query = SNAPMLA_SUPPORT_QUERY_INIT;
  std::string reason;
  CHECK(context.supports(query));
  query.num_heads = 129;
  CHECK(!context.supports(query, &reason) && reason.find("num_heads 129") != std::string::npos);
  snapmla_cache_params params = SNAPMLA_CACHE_PARAMS_INIT;
  params.num_pages = 2;
  params.page_size = 12;
  try {
    context.cache(params);
    CHECK(false);
  } catch (const snapmla::Error &error) {
    CHECK(error.status() == SNAPMLA_STATUS_INVALID_ARGUMENT);
    CHECK(std::string(error.what()).find("invalid argument: page_size 12") == 0);
  }
}

void decode() {
  snapmla::Context context(SNAPMLA_BACKEND_CPU);
  snapmla_cache_params geometry = SNAPMLA_CACHE_PARAMS_INIT;
  geometry.page_size = page_size;
  geometry.num_pages = 3;
  Memory memory(snapmla::cache_size(geometry));
  geometry.memory = memory.get();
  geometry.memory_size = memory.size();
  const snapmla::Cache cache = context.cache(geometry);

  std::uint32_t state = 7;
  std::vector<float> content(tokens * CONTENT), rope(tokens * ROPE), keys(tokens * (CONTENT + ROPE));
  fill(content.data(), content.size(), &state);
  fill(rope.data(), rope.size(), &state);
  std::vector<std::int64_t> slots;
  for (int token = 0; token < tokens; ++token) {
    slots.push_back(token < page_size ? 2 * page_size + token : token - page_size);
  }
  snapmla_k_append_params append = SNAPMLA_K_APPEND_PARAMS_INIT;
  append.dtype = SNAPMLA_DTYPE_F32;
  append.num_tokens = tokens;
  append.content = content.data();
  append.rope = rope.data();
  append.slots = slots.data();
  context.k_append(cache, append);

  snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
  fetch.dtype = SNAPMLA_DTYPE_F32;
  fetch.num_tokens = tokens;
  fetch.slots = slots.data();
  fetch.content = keys.data();
  fetch.content_stride = (CONTENT + ROPE) * sizeof(float);
  fetch.rope = keys.data() + CONTENT;
  fetch.rope_stride = fetch.content_stride;
  context.fetch_dequant(cache, fetch);

  std::vector<float> q_content(heads * CONTENT), q_rope(heads * ROPE), q_scale(heads);
  fill(q_content.data(), q_content.size(), &state);
  fill(q_rope.data(), q_rope.size(), &state);
  Memory quantised(heads * CONTENT), scaled(heads * ROPE * 2);
  snapmla_q_quant_params quant = SNAPMLA_Q_QUANT_PARAMS_INIT;
  quant.dtype = SNAPMLA_DTYPE_F32;
  quant.num_heads = heads;
  quant.num_tokens = 1;
  quant.content = q_content.data();
  quant.rope = q_rope.data();
  quant.q_content = quantised.get();
  quant.q_rope = scaled.get();
  quant.q_scale = q_scale.data();
  context.q_quant(quant);

  snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  limits.max_batch = 1;
  limits.max_seq_len = 2 * page_size;
  Memory workspace(context.decode_workspace_size(limits));
  const std::int32_t length = tokens, pages[2] = {2, 0};
  std::vector<float> out(heads * CONTENT), lse(heads);
  snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
  params.batch = 1;
  params.num_heads = heads;
  params.softmax_scale = 0.0625f;
  params.q_dtype = SNAPMLA_DTYPE_QUANTISED;
  params.q_content = quantised.get();
  params.q_rope = scaled.get();
  params.q_scale = q_scale.data();
  params.seq_lens = &length;
  params.block_table = pages;
  params.max_pages = 2;
  params.out_dtype = SNAPMLA_DTYPE_F32;
  params.out = out.data();
  params.lse = lse.data();
  params.workspace = workspace.get();
  params.workspace_size = workspace.size();
  context.decode(cache, params);

  for (int head = 0; head < heads; ++head) {
    double query[CONTENT + ROPE], wanted[CONTENT];
    dequantise(query, static_cast<const std::uint8_t *>(quant.q_content) + head * CONTENT,
               static_cast<const std::uint16_t *>(quant.q_rope) + head * ROPE, q_scale[static_cast<std::size_t>(head)]);
    const double wanted_lse = attend(wanted, query, keys.data(), tokens, 0.0625);
    CHECK(distance(out.data() + head * CONTENT, wanted, CONTENT) < 0.05);
    CHECK(std::fabs(static_cast<double>(lse[static_cast<std::size_t>(head)]) - wanted_lse) < 1e-4);
  }

  snapmla_merge_params merge = SNAPMLA_MERGE_PARAMS_INIT;
  std::vector<float> merged(heads * CONTENT);
  merge.num_parts = 1;
  merge.num_heads = heads;
  merge.num_tokens = 1;
  merge.parts_dtype = SNAPMLA_DTYPE_F32;
  merge.out_dtype = SNAPMLA_DTYPE_F32;
  merge.parts = out.data();
  merge.parts_lse = lse.data();
  merge.out = merged.data();
  context.merge(merge);
  CHECK(merged == out);

  const std::int64_t from = slots[5], to = page_size + 1;
  snapmla_records_copy_params copy = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
  copy.num_records = 1;
  copy.src_slots = &from;
  copy.dst_slots = &to;
  context.records_copy(cache, copy);
}

} // namespace

int main() {
  owners();
  failures();
  decode();
  std::string reason;
  CHECK(snapmla::backend_available(SNAPMLA_BACKEND_CPU));
  CHECK(snapmla::backend_available(SNAPMLA_BACKEND_CUDA, 0, &reason) || !reason.empty());
  return 0;
}
