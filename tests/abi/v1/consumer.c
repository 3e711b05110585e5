/*
 * A program of the time of binary interface version 1, never edited: it must keep compiling against every later header,
 * and, compiled against its own, keep running with every later library.
 *
 * Every token's content is one number repeated, which the cache keeps exactly, and the scale of the softmax is 0, so that
 * attention is the plain mean.
 */
#include "snapmla.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { PAGE = 64, HEADS = 2, TOKENS = 3 };

/* The signatures, as this program's compiler knows them. */
static uint32_t (*const abi_version)(void) = snapmla_abi_version;
static const char *(*const version)(void) = snapmla_version;
static const char *(*const status_string)(snapmla_status) = snapmla_status_string;
static const char *(*const last_error_message)(void) = snapmla_last_error_message;
static snapmla_status (*const backend_available)(snapmla_backend, int32_t) = snapmla_backend_available;
static snapmla_status (*const context_create)(const struct snapmla_context_params *,
                                              snapmla_context **) = snapmla_context_create;
static snapmla_status (*const context_destroy)(snapmla_context *) = snapmla_context_destroy;
static snapmla_status (*const context_describe)(const snapmla_context *,
                                                struct snapmla_context_info *) = snapmla_context_describe;
static snapmla_status (*const supports)(const snapmla_context *,
                                        const struct snapmla_support_query *) = snapmla_supports;
static snapmla_status (*const cache_size)(const struct snapmla_cache_params *, uint64_t *) = snapmla_cache_size;
static snapmla_status (*const cache_init)(snapmla_context *, const struct snapmla_cache_params *, snapmla_stream,
                                          snapmla_cache **) = snapmla_cache_init;
static snapmla_status (*const cache_destroy)(snapmla_cache *) = snapmla_cache_destroy;
static snapmla_status (*const k_append)(snapmla_context *, snapmla_cache *, const struct snapmla_k_append_params *,
                                        snapmla_stream) = snapmla_k_append;
static snapmla_status (*const q_quant)(snapmla_context *, const struct snapmla_q_quant_params *,
                                       snapmla_stream) = snapmla_q_quant;
static snapmla_status (*const records_copy)(snapmla_context *, snapmla_cache *,
                                            const struct snapmla_records_copy_params *,
                                            snapmla_stream) = snapmla_records_copy;
static snapmla_status (*const decode_workspace_size)(const snapmla_context *, const struct snapmla_decode_limits *,
                                                     uint64_t *) = snapmla_decode_workspace_size;
static snapmla_status (*const decode)(snapmla_context *, const snapmla_cache *, const struct snapmla_decode_params *,
                                      snapmla_stream) = snapmla_decode;
static snapmla_status (*const fetch_dequant)(snapmla_context *, const snapmla_cache *,
                                             const struct snapmla_fetch_params *,
                                             snapmla_stream) = snapmla_fetch_dequant;
static snapmla_status (*const merge)(snapmla_context *, const struct snapmla_merge_params *,
                                     snapmla_stream) = snapmla_merge;

static void expect(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    fprintf(stderr, "%s: %s\n", status_string(status), last_error_message());
    exit(1);
  }
}

static void *aligned(size_t bytes) {
  const uintptr_t raw = (uintptr_t)calloc(bytes + 256, 1);
  CHECK(raw != 0);
  return (void *)((raw + 255) & ~(uintptr_t)255);
}

static int near(float got, float wanted) { return fabsf(got - wanted) <= 0.04f * wanted; }

int main(void) {
  static float content[TOKENS][512], rope[TOKENS][64], queries[HEADS][512], query_ropes[HEADS][64];
  static float out[2][HEADS][512], back[TOKENS][512];
  float lse[2][HEADS], merged_lse[HEADS];
  static float merged[HEADS][512];
  int64_t slots[TOKENS] = {PAGE + 1, PAGE, 5}, copied = 7;
  const int32_t length = TOKENS, page = 0;
  struct snapmla_context_params context_params = SNAPMLA_CONTEXT_PARAMS_INIT;
  struct snapmla_context_info info = SNAPMLA_CONTEXT_INFO_INIT;
  struct snapmla_support_query query = SNAPMLA_SUPPORT_QUERY_INIT;
  struct snapmla_cache_params geometry = SNAPMLA_CACHE_PARAMS_INIT;
  struct snapmla_k_append_params append = SNAPMLA_K_APPEND_PARAMS_INIT;
  struct snapmla_q_quant_params quant = SNAPMLA_Q_QUANT_PARAMS_INIT;
  struct snapmla_records_copy_params copy = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  struct snapmla_decode_params attention = SNAPMLA_DECODE_PARAMS_INIT;
  struct snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
  struct snapmla_merge_params parts = SNAPMLA_MERGE_PARAMS_INIT;
  snapmla_context *context = NULL;
  snapmla_cache *cache = NULL;
  int token, d, head;

  CHECK(abi_version() >= SNAPMLA_ABI_VERSION && version()[0] != '\0');
  expect(backend_available(SNAPMLA_BACKEND_CPU, 0));
  context_params.backend = SNAPMLA_BACKEND_CPU;
  context_params.cpu_threads = 1;
  expect(context_create(&context_params, &context));
  expect(context_describe(context, &info));
  CHECK(info.backend == SNAPMLA_BACKEND_CPU && info.parallelism == 1 && strlen(info.name) < sizeof info.name);
  expect(supports(context, &query));

  geometry.num_pages = 2;
  expect(cache_size(&geometry, &geometry.memory_size));
  CHECK(geometry.memory_size == 2 * PAGE * SNAPMLA_RECORD_BYTES);
  geometry.memory = aligned((size_t)geometry.memory_size);
  expect(cache_init(context, &geometry, NULL, &cache));

  for (token = 0; token < TOKENS; token++) {
    for (d = 0; d < 512; d++) {
      content[token][d] = (float)(3 * token + 3);
    }
  }
  append.dtype = SNAPMLA_DTYPE_F32;
  append.num_tokens = TOKENS;
  append.content = content;
  append.rope = rope;
  append.slots = slots;
  expect(k_append(context, cache, &append, NULL));

  fetch.dtype = SNAPMLA_DTYPE_F32;
  fetch.num_tokens = TOKENS;
  fetch.slots = slots;
  fetch.content = back;
  expect(fetch_dequant(context, cache, &fetch, NULL));
  CHECK(near(back[0][511], 3.0f) && near(back[1][0], 6.0f) && near(back[2][100], 9.0f));

  /* Tokens 1 and 0 stand at the head of page 1; page 0 gets all three in its first slots. */
  for (token = 0; token < TOKENS; token++) {
    copied = token;
    copy.num_records = 1;
    copy.src_slots = &slots[token];
    copy.dst_slots = &copied;
    expect(records_copy(context, cache, &copy, NULL));
  }

  for (head = 0; head < HEADS; head++) {
    for (d = 0; d < 512; d++) {
      queries[head][d] = (float)(head + d % 5);
    }
  }
  quant.dtype = SNAPMLA_DTYPE_F32;
  quant.num_heads = HEADS;
  quant.num_tokens = 1;
  quant.content = queries;
  quant.rope = query_ropes;
  quant.q_content = aligned(HEADS * 512);
  quant.q_rope = aligned(HEADS * 128);
  quant.q_scale = (float *)aligned(HEADS * 4);
  expect(q_quant(context, &quant, NULL));
  CHECK(near(quant.q_scale[1], 5.0f / 448.0f));

  limits.max_batch = 1;
  limits.max_heads = HEADS;
  limits.max_seq_len = PAGE;
  expect(decode_workspace_size(context, &limits, &attention.workspace_size));
  attention.workspace = aligned((size_t)attention.workspace_size);
  attention.flags = SNAPMLA_DECODE_CAUSAL;
  attention.batch = 1;
  attention.num_heads = HEADS;
  attention.q_dtype = SNAPMLA_DTYPE_QUANTISED;
  attention.q_content = quant.q_content;
  attention.q_rope = quant.q_rope;
  attention.q_scale = quant.q_scale;
  attention.seq_lens = &length;
  attention.block_table = &page;
  attention.max_pages = 1;
  attention.out_dtype = SNAPMLA_DTYPE_F32;
  attention.out = out[0];
  attention.lse = lse[0];
  expect(decode(context, cache, &attention, NULL));
  attention.q_dtype = SNAPMLA_DTYPE_F32;
  attention.q_content = queries;
  attention.q_rope = query_ropes;
  attention.q_scale = NULL;
  attention.out = out[1];
  attention.lse = lse[1];
  expect(decode(context, cache, &attention, NULL));
  CHECK(near(out[0][0][0], 6.0f) && near(out[0][1][511], 6.0f) && near(lse[0][1], logf(3.0f)));
  CHECK(near(out[1][0][7], 6.0f) && near(lse[1][0], logf(3.0f)));

  parts.num_parts = 2;
  parts.num_heads = HEADS;
  parts.num_tokens = 1;
  parts.parts_dtype = SNAPMLA_DTYPE_F32;
  parts.out_dtype = SNAPMLA_DTYPE_F32;
  parts.parts = out;
  parts.parts_lse = lse[0];
  parts.out = merged;
  parts.lse = merged_lse;
  expect(merge(context, &parts, NULL));
  CHECK(near(merged[1][3], 6.0f) && near(merged_lse[0], logf(6.0f)));

  expect(cache_destroy(cache));
  expect(context_destroy(context));
  CHECK(context_destroy(context) == SNAPMLA_STATUS_INVALID_HANDLE);
  return 0;
}
