/*
 * A serving loop on the CPU backend: prompts come in chunks, every step appends and attends, a draft of two tokens is
 * verified in one call (MTP), and a prefix is read back for a request that continues it. One layer of a model stands for
 * all; its numbers are made up.
 *
 * With CUDA the loop is the same: the arrays are device memory, and every call takes the engine's stream.
 */
#include <snapmla.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                              \
  do {                                                           \
    if ((call) != SNAPMLA_STATUS_OK) {                           \
      fprintf(stderr, "%s\n", snapmla_last_error_message());     \
      exit(1);                                                   \
    }                                                            \
  } while (0)

enum { PAGE = 64, PAGES = 16, BATCH = 2, COLUMNS = 8, HEADS = 16, CHUNK = 48, DRAFT = 2 };

/* The engine's: who has which pages, and how many tokens. */
static int32_t block_table[BATCH][COLUMNS] = {{3, 9, 1, 14, 0, 5, 8, 11}, {7, 2, 12, 4, 15, 6, 10, 13}};
static int32_t seq_lens[BATCH];

static snapmla_context *context;
static snapmla_cache *cache;

static void *allocate(uint64_t bytes) {
  void *memory = aligned_alloc(256, (size_t)(bytes + 255) / 256 * 256);
  if (memory == NULL && bytes > 0) {
    exit(1);
  }
  return memory;
}

/* What the model's projections would give. */
static void make(float *to, size_t count) {
  static uint32_t state = 1;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    to[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
  }
}

/* New tokens of every sequence, in one call: a sequence's slots follow from its pages. */
static void append(int tokens) {
  static float content[BATCH * CHUNK][SNAPMLA_CONTENT_DIM], rope[BATCH * CHUNK][SNAPMLA_ROPE_DIM];
  int64_t slots[BATCH * CHUNK];
  for (int b = 0; b < BATCH; b++) {
    for (int i = 0; i < tokens; i++) {
      const int position = seq_lens[b] + i;
      slots[b * tokens + i] = (int64_t)block_table[b][position / PAGE] * PAGE + position % PAGE;
    }
    seq_lens[b] += tokens;
  }
  make(content[0], sizeof content / sizeof(float));
  make(rope[0], sizeof rope / sizeof(float));

  struct snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_tokens = BATCH * tokens;
  params.content = content;
  params.rope = rope;
  params.slots = slots;
  CHECK(snapmla_k_append(context, cache, &params, NULL));
}

/* The last `q_len` tokens of every sequence attend to all before them and to themselves. */
static void attend(uint32_t q_len, void *workspace, uint64_t workspace_size) {
  static float content[BATCH * DRAFT][HEADS][SNAPMLA_CONTENT_DIM], rope[BATCH * DRAFT][HEADS][SNAPMLA_ROPE_DIM];
  static float out[BATCH * DRAFT][HEADS][SNAPMLA_CONTENT_DIM], lse[BATCH * DRAFT][HEADS];
  make(content[0][0], sizeof content / sizeof(float));
  make(rope[0][0], sizeof rope / sizeof(float));

  struct snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
  params.flags = SNAPMLA_DECODE_CAUSAL;
  params.batch = BATCH;
  params.q_len = q_len;
  params.num_heads = HEADS;
  params.softmax_scale = 0.0721688f; /* 1/sqrt(128 + 64) */
  params.q_dtype = params.out_dtype = SNAPMLA_DTYPE_F32;
  params.q_content = content;
  params.q_rope = rope;
  params.seq_lens = seq_lens;
  params.block_table = block_table[0];
  params.max_pages = COLUMNS;
  params.out = out;
  params.lse = lse[0];
  params.workspace = workspace;
  params.workspace_size = workspace_size;
  CHECK(snapmla_decode(context, cache, &params, NULL));
  printf("%4d and %4d tokens, %u queries each: log-sum-exp %.4f\n", (int)seq_lens[0], (int)seq_lens[1], (unsigned)q_len,
         (double)lse[0][0]);
}

/* The first tokens of sequence 0 at high precision, as a chunked prefill of a further request takes them. */
static void fetch_prefix(int tokens) {
  float *content = allocate(sizeof(float) * SNAPMLA_CONTENT_DIM * (size_t)tokens);
  float *rope = allocate(sizeof(float) * SNAPMLA_ROPE_DIM * (size_t)tokens);
  const int32_t cu_tokens[2] = {0, tokens};
  struct snapmla_fetch_params params = SNAPMLA_FETCH_PARAMS_INIT;
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_tokens = tokens;
  params.block_table = block_table[0];
  params.max_pages = COLUMNS;
  params.batch = 1;
  params.cu_tokens = cu_tokens;
  params.content = content;
  params.rope = rope;
  CHECK(snapmla_fetch_dequant(context, cache, &params, NULL));
  printf("prefix of %d tokens: content[0][0] = %.3f\n", tokens, (double)content[0]);
  free(content);
  free(rope);
}

int main(void) {
  struct snapmla_context_params context_params = SNAPMLA_CONTEXT_PARAMS_INIT;
  context_params.backend = SNAPMLA_BACKEND_CPU;
  CHECK(snapmla_context_create(&context_params, &context));

  struct snapmla_cache_params cache_params = SNAPMLA_CACHE_PARAMS_INIT;
  cache_params.page_size = PAGE;
  cache_params.num_pages = PAGES;
  CHECK(snapmla_cache_size(&cache_params, &cache_params.memory_size));
  cache_params.memory = allocate(cache_params.memory_size);
  CHECK(snapmla_cache_init(context, &cache_params, NULL, &cache));

  /* Once, for the largest call there will be. */
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  uint64_t workspace_size = 0;
  limits.max_batch = BATCH;
  limits.max_q_len = DRAFT;
  limits.max_heads = HEADS;
  limits.max_seq_len = COLUMNS * PAGE;
  CHECK(snapmla_decode_workspace_size(context, &limits, &workspace_size));
  void *workspace = allocate(workspace_size);

  for (int chunk = 0; chunk < 3; chunk++) {
    append(CHUNK);
  }
  for (int step = 0; step < 8; step++) {
    append(1);
    attend(1, workspace, workspace_size);
  }
  for (int step = 0; step < 3; step++) {
    append(DRAFT);
    attend(DRAFT, workspace, workspace_size);
    /* One of the two is rejected: its slot is simply written again. */
    for (int b = 0; b < BATCH; b++) {
      seq_lens[b] -= 1;
    }
  }
  fetch_prefix(2 * CHUNK);

  CHECK(snapmla_cache_destroy(cache));
  CHECK(snapmla_context_destroy(context));
  free(workspace);
  free(cache_params.memory);
  return 0;
}
