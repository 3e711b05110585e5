/*
 * A whole session of a C program on the CPU backend: two sequences in a paged cache of two layers, filled in chunks,
 * decoded step by step, with several queries a sequence, ragged, copied, fetched, merged.
 */
#include "snapmla.h"

#include "check.h"
#include "reference.h"

enum { PAGE = 16, PAGES = 12, LAYERS = 2, LAYER = 1, HEADS = 3, BATCH = 2, COLUMNS = 5, MOST = COLUMNS * PAGE };

static const double SCALE = 0.0625;

/* What the program knows of its sequences: their pages, how long they are, and the keys as the cache holds them. */
static int32_t block_table[BATCH][COLUMNS] = {{7, 2, 9, 4, 11}, {3, 10, 1, 8, 5}};
static int32_t lengths[BATCH];
static float keys[BATCH][MOST][CONTENT + ROPE];
static uint32_t state = 1;

static void expect(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    fprintf(stderr, "%s: %s\n", snapmla_status_string(status), snapmla_last_error_message());
    exit(1);
  }
}

static int64_t slot_of(int sequence, int token) {
  return (int64_t)block_table[sequence][token / PAGE] * PAGE + token % PAGE;
}

/* Memory that lives as long as the program, as an engine's pool does. */
static void *pool[64];
static int pooled = 0;

static void *aligned(size_t bytes) {
  void *raw = malloc(bytes + 256);
  CHECK(raw != NULL && pooled < 64);
  pool[pooled++] = raw;
  return (void *)(((uintptr_t)raw + 255) & ~(uintptr_t)255);
}

/* Appends `count` tokens to a sequence; content and rope lie interleaved in rows that are wider than both. */
static void append(snapmla_context *context, snapmla_cache *cache, int sequence, int count) {
  enum { WIDE = CONTENT + ROPE + 8 };
  struct snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
  float rows[MOST * WIDE];
  int64_t slots[MOST];
  int i;
  fill(rows, (size_t)count * WIDE, &state);
  for (i = 0; i < count; i++) {
    slots[i] = slot_of(sequence, lengths[sequence] + i);
  }
  params.layer = LAYER;
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_tokens = count;
  params.content = rows + ROPE;
  params.content_stride = WIDE * sizeof(float);
  params.rope = rows;
  params.rope_stride = WIDE * sizeof(float);
  params.slots = slots;
  expect(snapmla_k_append(context, cache, &params, NULL));
  for (i = 0; i < count; i++) {
    float *key = keys[sequence][lengths[sequence] + i];
    const float *row = rows + i * WIDE;
    struct snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
    double content[CONTENT], rope[ROPE];
    int d;
    fetch.layer = LAYER;
    fetch.dtype = SNAPMLA_DTYPE_F32;
    fetch.num_tokens = 1;
    fetch.slots = &slots[i];
    fetch.content = key;
    fetch.rope = key + CONTENT;
    expect(snapmla_fetch_dequant(context, cache, &fetch, NULL));
    for (d = 0; d < CONTENT; d++) {
      content[d] = (double)row[ROPE + d];
    }
    for (d = 0; d < ROPE; d++) {
      rope[d] = (double)row[d];
    }
    /* Rounding of E4M3 (three bits of mantissa) and of BF16 (seven). */
    CHECK(distance(key, content, CONTENT) < 0.035);
    CHECK(distance(key + CONTENT, rope, ROPE) < 0.003);
  }
  lengths[sequence] += count;
}

/* Queries of one call: raw, quantised by the library, and the latter as doubles. */
struct queries {
  float content[8 * HEADS * CONTENT];
  float rope[8 * HEADS * ROPE];
  uint8_t *q_content;
  uint16_t *q_rope;
  float q_scale[8 * HEADS];
  double rows[8 * HEADS][CONTENT + ROPE];
};

static void make_queries(snapmla_context *context, struct queries *queries, int tokens) {
  struct snapmla_q_quant_params params = SNAPMLA_Q_QUANT_PARAMS_INIT;
  int row;
  if (queries->q_content == NULL) {
    queries->q_content = (uint8_t *)aligned(8 * HEADS * CONTENT);
    queries->q_rope = (uint16_t *)aligned(8 * HEADS * ROPE * 2);
  }
  fill(queries->content, (size_t)tokens * HEADS * CONTENT, &state);
  fill(queries->rope, (size_t)tokens * HEADS * ROPE, &state);
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_heads = HEADS;
  params.num_tokens = tokens;
  params.content = queries->content;
  params.rope = queries->rope;
  params.q_content = queries->q_content;
  params.q_rope = queries->q_rope;
  params.q_scale = queries->q_scale;
  expect(snapmla_q_quant(context, &params, NULL));
  for (row = 0; row < tokens * HEADS; row++) {
    dequantise(queries->rows[row], queries->q_content + row * CONTENT, queries->q_rope + row * ROPE,
               queries->q_scale[row]);
  }
}

static struct snapmla_decode_params decode_params(snapmla_context *context, const struct queries *queries,
                                                  uint32_t q_len) {
  struct snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  limits.max_batch = BATCH;
  limits.max_q_len = 4;
  limits.max_heads = HEADS;
  limits.max_seq_len = MOST;
  expect(snapmla_decode_workspace_size(context, &limits, &params.workspace_size));
  params.workspace = params.workspace_size == 0 ? NULL : aligned((size_t)params.workspace_size);
  params.flags = SNAPMLA_DECODE_CAUSAL;
  params.layer = LAYER;
  params.batch = BATCH;
  params.q_len = q_len;
  params.num_heads = HEADS;
  params.softmax_scale = (float)SCALE;
  params.q_dtype = SNAPMLA_DTYPE_QUANTISED;
  params.q_content = queries->q_content;
  params.q_rope = queries->q_rope;
  params.q_scale = queries->q_scale;
  params.seq_lens = lengths;
  params.block_table = block_table[0];
  params.max_pages = COLUMNS;
  params.out_dtype = SNAPMLA_DTYPE_F32;
  return params;
}

/* Checks the output rows of one sequence, whose first query token is row `first` of the call. */
static void check_rows(const struct queries *queries, const float *out, const float *lse, int sequence, int first,
                       int q_len) {
  int i, head;
  for (i = 0; i < q_len; i++) {
    for (head = 0; head < HEADS; head++) {
      const int row = (first + i) * HEADS + head;
      double wanted[CONTENT];
      const double wanted_lse = attend(wanted, queries->rows[row], keys[sequence][0],
                                       lengths[sequence] - q_len + i + 1, SCALE);
      CHECK(distance(out + row * CONTENT, wanted, CONTENT) < 0.05);
      CHECK(fabs((double)lse[row] - wanted_lse) < 1e-4);
    }
  }
}

static void decode_steps(snapmla_context *context, snapmla_cache *cache, struct queries *queries) {
  static float out[BATCH * HEADS * CONTENT], again[BATCH * HEADS * CONTENT];
  float lse[BATCH * HEADS];
  int step;
  for (step = 0; step < 5; step++) {
    struct snapmla_decode_params params;
    append(context, cache, 0, 1);
    append(context, cache, 1, 1);
    make_queries(context, queries, BATCH);
    params = decode_params(context, queries, 1);
    params.out = out;
    params.lse = lse;
    expect(snapmla_decode(context, cache, &params, NULL));
    check_rows(queries, out, lse, 0, 0, 1);
    check_rows(queries, out, lse, 1, 1, 1);
    /* Raw queries are quantised the same way. */
    params.q_dtype = SNAPMLA_DTYPE_F32;
    params.q_content = queries->content;
    params.q_rope = queries->rope;
    params.q_scale = NULL;
    params.out = again;
    params.lse = NULL;
    expect(snapmla_decode(context, cache, &params, NULL));
    CHECK(memcmp(out, again, sizeof out) == 0);
  }
}

static void several_queries(snapmla_context *context, snapmla_cache *cache, struct queries *queries) {
  static float out[BATCH * 4 * HEADS * CONTENT];
  /* The second, as in a longer array: two rows of the tensors belong to somebody else. */
  static const int32_t cu_q_lens[2][BATCH + 1] = {{0, 1, 4}, {2, 5, 6}};
  float lse[BATCH * 4 * HEADS];
  struct snapmla_decode_params params;
  int sequence, i;
  make_queries(context, queries, BATCH * 4);
  params = decode_params(context, queries, 4);
  params.out = out;
  params.lse = lse;
  expect(snapmla_decode(context, cache, &params, NULL));
  for (sequence = 0; sequence < BATCH; sequence++) {
    check_rows(queries, out, lse, sequence, sequence * 4, 4);
  }
  params.q_len = 3;
  for (i = 0; i < 2; i++) {
    const int32_t *ends = cu_q_lens[i];
    params.cu_q_lens = ends;
    out[0] = 7.0f;
    expect(snapmla_decode(context, cache, &params, NULL));
    CHECK(i == 0 || out[0] == 7.0f);
    for (sequence = 0; sequence < BATCH; sequence++) {
      check_rows(queries, out, lse, sequence, ends[sequence], ends[sequence + 1] - ends[sequence]);
    }
  }
}

/* Reads both sequences back from their fifth token on, through the block table. */
static void fetch_all(snapmla_context *context, snapmla_cache *cache) {
  static float content[BATCH * MOST * CONTENT], rope[BATCH * MOST * ROPE];
  const int32_t starts[BATCH] = {5, 5};
  int32_t cu_tokens[BATCH + 1] = {0, 0, 0};
  struct snapmla_fetch_params params = SNAPMLA_FETCH_PARAMS_INIT;
  int sequence, row;
  for (sequence = 0; sequence < BATCH; sequence++) {
    cu_tokens[sequence + 1] = cu_tokens[sequence] + lengths[sequence] - 5;
  }
  params.layer = LAYER;
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_tokens = cu_tokens[BATCH];
  params.block_table = block_table[0];
  params.max_pages = COLUMNS;
  params.batch = BATCH;
  params.starts = starts;
  params.cu_tokens = cu_tokens;
  params.content = content;
  params.rope = rope;
  expect(snapmla_fetch_dequant(context, cache, &params, NULL));
  for (sequence = 0; sequence < BATCH; sequence++) {
    for (row = cu_tokens[sequence]; row < cu_tokens[sequence + 1]; row++) {
      const float *key = keys[sequence][5 + row - cu_tokens[sequence]];
      CHECK(memcmp(content + row * CONTENT, key, CONTENT * sizeof(float)) == 0);
      CHECK(memcmp(rope + row * ROPE, key + CONTENT, ROPE * sizeof(float)) == 0);
    }
  }
}

/* Copies the second sequence's first page to a free one, and decodes from there. */
static void copy_on_write(snapmla_context *context, snapmla_cache *cache, struct queries *queries) {
  static float before[BATCH * HEADS * CONTENT], after[BATCH * HEADS * CONTENT];
  struct snapmla_records_copy_params copy = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
  struct snapmla_decode_params params;
  int64_t from[PAGE], to[PAGE];
  int i;
  make_queries(context, queries, BATCH);
  params = decode_params(context, queries, 1);
  params.out = before;
  expect(snapmla_decode(context, cache, &params, NULL));
  for (i = 0; i < PAGE; i++) {
    from[i] = slot_of(1, i);
    to[i] = 6 * PAGE + i;
  }
  copy.layer = SNAPMLA_ALL_LAYERS;
  copy.num_records = PAGE;
  copy.src_slots = from;
  copy.dst_slots = to;
  expect(snapmla_records_copy(context, cache, &copy, NULL));
  block_table[1][0] = 6;
  params.out = after;
  expect(snapmla_decode(context, cache, &params, NULL));
  CHECK(memcmp(before, after, sizeof before) == 0);
}

/* The tokens listed slot by slot, in place of the pages that hold them, give the same bits. */
static void decode_over_slots(snapmla_context *context, snapmla_cache *cache, struct queries *queries) {
  static float by_table[BATCH * HEADS * CONTENT], by_slots[BATCH * HEADS * CONTENT];
  static int64_t slots[BATCH][MOST];
  struct snapmla_support_query query = SNAPMLA_SUPPORT_QUERY_INIT;
  struct snapmla_decode_params params;
  int sequence, token;
  query.over_slots = 1;
  expect(snapmla_supports(context, &query));
  for (sequence = 0; sequence < BATCH; sequence++) {
    for (token = 0; token < lengths[sequence]; token++) {
      slots[sequence][token] = slot_of(sequence, token);
    }
  }
  make_queries(context, queries, BATCH);
  params = decode_params(context, queries, 1);
  params.out = by_table;
  expect(snapmla_decode(context, cache, &params, NULL));
  params.out = by_slots;
  params.block_table = NULL;
  params.max_pages = 0;
  params.slots = slots[0];
  params.max_slots = MOST;
  expect(snapmla_decode(context, cache, &params, NULL));
  CHECK(memcmp(by_table, by_slots, sizeof by_table) == 0);
}

/* Attention over the first two pages and over the rest, merged, is attention over all. */
static void merge_halves(snapmla_context *context, snapmla_cache *cache, struct queries *queries) {
  static float parts[2][BATCH * HEADS * CONTENT], out[BATCH * HEADS * CONTENT];
  float parts_lse[2][BATCH * HEADS], lse[BATCH * HEADS];
  const int32_t head_lengths[BATCH] = {2 * PAGE, 2 * PAGE};
  const int32_t tail_lengths[BATCH] = {lengths[0] - 2 * PAGE, lengths[1] - 2 * PAGE};
  struct snapmla_merge_params merge = SNAPMLA_MERGE_PARAMS_INIT;
  struct snapmla_decode_params params;
  CHECK(tail_lengths[0] > 0 && tail_lengths[1] > 0);
  make_queries(context, queries, BATCH);
  params = decode_params(context, queries, 1);
  params.block_table_stride = sizeof block_table[0];
  params.seq_lens = head_lengths;
  params.max_pages = 2;
  params.out = parts[0];
  params.lse = parts_lse[0];
  expect(snapmla_decode(context, cache, &params, NULL));
  params.seq_lens = tail_lengths;
  params.block_table = &block_table[0][2];
  params.max_pages = COLUMNS - 2;
  params.out = parts[1];
  params.lse = parts_lse[1];
  expect(snapmla_decode(context, cache, &params, NULL));
  merge.num_parts = 2;
  merge.num_heads = HEADS;
  merge.num_tokens = BATCH;
  merge.parts_dtype = SNAPMLA_DTYPE_F32;
  merge.out_dtype = SNAPMLA_DTYPE_F32;
  merge.parts = parts;
  merge.parts_lse = parts_lse[0];
  merge.out = out;
  merge.lse = lse;
  expect(snapmla_merge(context, &merge, NULL));
  check_rows(queries, out, lse, 0, 0, 1);
  check_rows(queries, out, lse, 1, 1, 1);
}

int main(void) {
  struct snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
  struct snapmla_context_info info = SNAPMLA_CONTEXT_INFO_INIT;
  struct snapmla_support_query query = SNAPMLA_SUPPORT_QUERY_INIT;
  struct snapmla_cache_params geometry = SNAPMLA_CACHE_PARAMS_INIT;
  static struct queries queries;
  snapmla_context *context = NULL;
  snapmla_cache *cache = NULL;
  uint64_t size = 0, at;
  int sequence, chunk;

  CHECK(snapmla_abi_version() >= SNAPMLA_ABI_VERSION);
  params.backend = SNAPMLA_BACKEND_CPU;
  params.cpu_threads = 2;
  expect(snapmla_backend_available(params.backend, 0));
  expect(snapmla_context_create(&params, &context));
  expect(snapmla_context_describe(context, &info));
  CHECK(info.backend == SNAPMLA_BACKEND_CPU && info.device_ordinal == -1 && info.parallelism == 2);
  CHECK(info.name[0] != '\0');
  expect(snapmla_supports(context, &query));
  query.content_dim = 256;
  CHECK(snapmla_supports(context, &query) == SNAPMLA_STATUS_UNSUPPORTED);
  CHECK(strstr(snapmla_last_error_message(), "content_dim is 256") != NULL);

  geometry.page_size = PAGE;
  geometry.num_layers = LAYERS;
  geometry.num_pages = PAGES;
  geometry.page_stride = PAGE * SNAPMLA_RECORD_BYTES + 64;
  expect(snapmla_cache_size(&geometry, &size));
  geometry.memory = aligned((size_t)size);
  geometry.memory_size = size;
  memset(geometry.memory, 255, (size_t)size);
  expect(snapmla_cache_init(context, &geometry, NULL, &cache));
  for (at = 0; at < size; at++) {
    /* Pages are zeros, the bytes between them are the caller's. */
    const int between = at % (uint64_t)geometry.page_stride >= PAGE * SNAPMLA_RECORD_BYTES;
    CHECK(((const uint8_t *)geometry.memory)[at] == (between ? 255 : 0));
  }

  for (sequence = 0; sequence < BATCH; sequence++) {
    for (chunk = 0; chunk < 4; chunk++) {
      append(context, cache, sequence, 8 + sequence + chunk);
    }
  }
  decode_steps(context, cache, &queries);
  several_queries(context, cache, &queries);
  fetch_all(context, cache);
  copy_on_write(context, cache, &queries);
  merge_halves(context, cache, &queries);
  decode_over_slots(context, cache, &queries);

  expect(snapmla_context_destroy(context));
  expect(snapmla_cache_destroy(cache));
  CHECK(snapmla_cache_destroy(cache) == SNAPMLA_STATUS_INVALID_HANDLE);
  CHECK(snapmla_context_destroy(context) == SNAPMLA_STATUS_INVALID_HANDLE);
  while (pooled > 0) {
    free(pool[--pooled]);
  }
  return 0;
}
