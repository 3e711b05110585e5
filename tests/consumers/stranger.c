/*
 * A program written from snapmla.h alone, for either backend: `stranger cpu` or `stranger cuda`.
 *
 * Whole sessions over page sizes, layouts, head counts and element types, each answer held against attention in double
 * precision over what the cache itself reads back. The CUDA driver is opened at run time, so that the program builds and
 * starts where there is none.
 */
#include "snapmla.h"

#include <dlfcn.h>
#include <pthread.h>

#include "check.h"
#include "reference.h"

enum { WIDTH = CONTENT + ROPE, BATCH = 4, TOKENS_MOST = 320 };

static uint32_t state = 7;

static void expect(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    fprintf(stderr, "%s: %s\n", snapmla_status_string(status), snapmla_last_error_message());
    exit(1);
  }
}

/* A refusal has its status and names the parameter. */
static void refused(snapmla_status status, snapmla_status wanted, const char *parameter) {
  if (status != wanted || strstr(snapmla_last_error_message(), parameter) == NULL) {
    fprintf(stderr, "%s (%s), not %s of %s\n", snapmla_status_string(status), snapmla_last_error_message(),
            snapmla_status_string(wanted), parameter);
    exit(1);
  }
}

/* Memory of the backend. On CUDA, the few functions of the driver that it takes. */
static struct {
  void *library, *context;
  int (*set_current)(void *);
  int (*alloc)(uint64_t *, size_t);
  int (*release)(uint64_t);
  int (*write)(uint64_t, const void *, size_t);
  int (*read)(void *, uint64_t, size_t);
  int (*synchronise)(void);
} cuda;

static void symbol(void *function, const char *name) {
  void *found = dlsym(cuda.library, name);
  CHECK(found != NULL);
  memcpy(function, &found, sizeof found);
}

static void open_cuda(void) {
  int (*init)(unsigned), (*retain)(void **, int), device = 0;
  cuda.library = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(cuda.library != NULL);
  symbol(&init, "cuInit");
  symbol(&retain, "cuDevicePrimaryCtxRetain");
  symbol(&cuda.set_current, "cuCtxSetCurrent");
  symbol(&cuda.alloc, "cuMemAlloc_v2");
  symbol(&cuda.release, "cuMemFree_v2");
  symbol(&cuda.write, "cuMemcpyHtoD_v2");
  symbol(&cuda.read, "cuMemcpyDtoH_v2");
  symbol(&cuda.synchronise, "cuCtxSynchronize");
  CHECK(init(0) == 0 && retain(&cuda.context, device) == 0 && cuda.set_current(cuda.context) == 0);
}

static void write_to(void *to, const void *from, size_t bytes) {
  if (cuda.library != NULL) {
    CHECK(cuda.write((uint64_t)(uintptr_t)to, from, bytes) == 0);
  } else {
    memcpy(to, from, bytes);
  }
}

static void read_from(void *to, const void *from, size_t bytes) {
  if (cuda.library != NULL) {
    CHECK(cuda.synchronise() == 0 && cuda.read(to, (uint64_t)(uintptr_t)from, bytes) == 0);
  } else {
    memcpy(to, from, bytes);
  }
}

/* 256-byte aligned, every byte 255: a NaN in each element type. */
static void *new_memory(size_t bytes) {
  void *memory = NULL, *poison = malloc(bytes + 1);
  CHECK(poison != NULL);
  memset(poison, 255, bytes);
  if (cuda.library != NULL) {
    uint64_t address = 0;
    CHECK(cuda.alloc(&address, bytes + 256) == 0);
    memory = (void *)(uintptr_t)address;
  } else {
    /* The raw pointer stands before the aligned one. */
    char *raw = (char *)malloc(bytes + 512), *aligned;
    CHECK(raw != NULL);
    aligned = (char *)(((uintptr_t)raw + 511) & ~(uintptr_t)255);
    memcpy(aligned - sizeof raw, &raw, sizeof raw);
    memory = aligned;
  }
  write_to(memory, poison, bytes);
  free(poison);
  return memory;
}

static void *new_copy(const void *from, size_t bytes) {
  void *memory = new_memory(bytes);
  write_to(memory, from, bytes);
  return memory;
}

static void free_memory(const void *memory) {
  if (memory == NULL) {
    return;
  }
  if (cuda.library != NULL) {
    CHECK(cuda.synchronise() == 0 && cuda.release((uint64_t)(uintptr_t)memory) == 0);
  } else {
    void *raw;
    memcpy(&raw, (const char *)memory - sizeof raw, sizeof raw);
    free(raw);
  }
}

/* Element types. Inputs are multiples of 1/64 up to 2, which every type holds exactly. */
static size_t size_of(snapmla_dtype dtype) { return dtype == SNAPMLA_DTYPE_F32 ? 4 : 2; }

static float exact_number(void) { return (float)(int)(next_number(&state) * 127.0f) / 64.0f; }

static void encode(void *to, float value, snapmla_dtype dtype) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (dtype == SNAPMLA_DTYPE_F32) {
    memcpy(to, &bits, 4);
  } else {
    const uint32_t half = value == 0.0f ? 0 : (((bits >> 13) & 0x3ffffu) - (112u << 10)) | ((bits >> 16) & 0x8000u);
    const uint16_t short_bits = (uint16_t)(dtype == SNAPMLA_DTYPE_BF16 ? bits >> 16 : half);
    memcpy(to, &short_bits, 2);
  }
}

static double decode_number(const void *from, snapmla_dtype dtype) {
  uint16_t bits;
  if (dtype == SNAPMLA_DTYPE_F32) {
    float value;
    memcpy(&value, from, 4);
    return (double)value;
  }
  memcpy(&bits, from, 2);
  if (dtype == SNAPMLA_DTYPE_BF16) {
    return from_bf16(bits);
  } else {
    const int exponent = (bits >> 10) & 31;
    const double mantissa = (double)(bits & 1023);
    const double size = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024.0 + mantissa, exponent - 25);
    return exponent == 31 ? (double)NAN : ((bits & 0x8000) != 0 ? -size : size);
  }
}

/* One model's session: what it varies, and what it knows. */
struct session {
  uint32_t page_size, layers, heads;
  int interleaved; /* Layers inside a block of the engine, rather than one after another. */
  snapmla_dtype in, out;

  snapmla_context *context;
  snapmla_cache *cache;
  struct snapmla_cache_params geometry;
  int32_t columns, lengths[BATCH];
  int32_t *table; /* [BATCH][columns + 1]: the last column is no page. */
};

static int64_t slot_of(const struct session *s, int sequence, int token) {
  const int32_t page = s->table[sequence * (s->columns + 1) + token / (int)s->page_size];
  return (int64_t)page * s->page_size + token % (int)s->page_size;
}

static void open_session(struct session *s) {
  const int64_t page_bytes = (int64_t)s->page_size * SNAPMLA_RECORD_BYTES;
  const struct snapmla_cache_params initial = SNAPMLA_CACHE_PARAMS_INIT;
  int b, c;
  s->columns = (TOKENS_MOST + (int32_t)s->page_size - 1) / (int32_t)s->page_size;
  s->table = (int32_t *)malloc(sizeof(int32_t) * BATCH * (size_t)(s->columns + 1));
  for (b = 0; b < BATCH; b++) {
    for (c = 0; c <= s->columns; c++) {
      /* Neighbours in a sequence are far apart in memory; page 0 is nobody's. */
      s->table[b * (s->columns + 1) + c] = c < s->columns ? 1 + b + BATCH * (s->columns - 1 - c) : 1 << 30;
    }
    s->lengths[b] = 0;
  }
  s->geometry = initial;
  s->geometry.page_size = s->page_size;
  s->geometry.num_layers = s->layers;
  s->geometry.num_pages = 1 + BATCH * s->columns;
  if (s->interleaved) {
    s->geometry.layer_stride = page_bytes + 32;
    s->geometry.page_stride = s->geometry.layer_stride * s->layers + 16;
  }
  expect(snapmla_cache_size(&s->geometry, &s->geometry.memory_size));
  s->geometry.memory = new_memory((size_t)s->geometry.memory_size);
  /* What the memory held stays, so that pages without tokens are poison. */
  s->geometry.flags = SNAPMLA_CACHE_KEEP_CONTENTS;
  expect(snapmla_cache_init(s->context, &s->geometry, NULL, &s->cache));
}

static void close_session(struct session *s) {
  expect(snapmla_cache_destroy(s->cache));
  free_memory(s->geometry.memory);
  free(s->table);
}

/* Appends tokens to every sequence in one call, rope before content in padded rows, with a skipped token between. */
static void append(struct session *s, int layer, const int counts[BATCH]) {
  const size_t element = size_of(s->in), row_bytes = (WIDTH + 24) * element;
  struct snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
  struct snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
  int b, i, d, tokens = 0, token = 0;
  for (b = 0; b < BATCH; b++) {
    tokens += counts[b] + 1;
  }
  {
    char *rows = (char *)malloc((size_t)tokens * row_bytes), *device_rows;
    int64_t *slots = (int64_t *)malloc((size_t)tokens * sizeof(int64_t)), *device_slots;
    float *content = (float *)malloc((size_t)tokens * CONTENT * 4), *rope = (float *)malloc((size_t)tokens * ROPE * 4);
    memset(rows, 255, (size_t)tokens * row_bytes);
    for (b = 0; b < BATCH; b++) {
      for (i = 0; i <= counts[b]; i++, token++) {
        slots[token] = i < counts[b] ? slot_of(s, b, s->lengths[b] + i) : -1 - b;
        for (d = 0; d < WIDTH; d++) {
          encode(rows + (size_t)token * row_bytes + (size_t)d * element, exact_number(), s->in);
        }
      }
    }
    device_rows = (char *)new_copy(rows, (size_t)tokens * row_bytes);
    device_slots = (int64_t *)new_copy(slots, (size_t)tokens * sizeof(int64_t));
    params.layer = layer;
    params.dtype = s->in;
    params.num_tokens = tokens;
    params.rope = device_rows;
    params.content = device_rows + ROPE * element;
    params.rope_stride = params.content_stride = (int64_t)row_bytes;
    params.slots = device_slots;
    expect(snapmla_k_append(s->context, s->cache, &params, NULL));

    /* Read back by the same slots: rounded to E4M3 and BF16, and the rows of skipped tokens unwritten. */
    fetch.layer = layer;
    fetch.dtype = SNAPMLA_DTYPE_F32;
    fetch.num_tokens = tokens;
    fetch.slots = device_slots;
    fetch.content = new_memory((size_t)tokens * CONTENT * 4);
    fetch.rope = new_memory((size_t)tokens * ROPE * 4);
    expect(snapmla_fetch_dequant(s->context, s->cache, &fetch, NULL));
    read_from(content, fetch.content, (size_t)tokens * CONTENT * 4);
    read_from(rope, fetch.rope, (size_t)tokens * ROPE * 4);
    for (token = 0; token < tokens; token++) {
      double wanted[WIDTH];
      for (d = 0; d < WIDTH; d++) {
        wanted[d] = decode_number(rows + (size_t)token * row_bytes + (size_t)d * element, s->in);
      }
      if (slots[token] < 0) {
        CHECK(isnan(content[token * CONTENT]) && isnan(rope[token * ROPE + ROPE - 1]));
      } else {
        CHECK(distance(rope + token * ROPE, wanted, ROPE) < 0.003);
        CHECK(distance(content + token * CONTENT, wanted + ROPE, CONTENT) < 0.035);
      }
    }
    free_memory(fetch.content);
    free_memory(fetch.rope);
    free_memory(device_rows);
    free_memory(device_slots);
    free(rows);
    free(slots);
    free(content);
    free(rope);
  }
}

/* What a layer holds of a sequence, through the block table; [lengths][WIDTH], the caller's to free. */
static float *keys_of(const struct session *s, int layer, int sequence) {
  const int tokens = s->lengths[sequence];
  const int32_t cu_tokens[2] = {0, tokens};
  struct snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
  float *keys = (float *)malloc((size_t)(tokens + 1) * WIDTH * 4);
  char *rows = (char *)new_memory((size_t)(tokens + 1) * WIDTH * 4);
  int32_t *table = (int32_t *)new_copy(s->table + sequence * (s->columns + 1), sizeof(int32_t) * (size_t)s->columns);
  int32_t *cu = (int32_t *)new_copy(cu_tokens, sizeof cu_tokens);
  fetch.layer = layer;
  fetch.dtype = SNAPMLA_DTYPE_F32;
  fetch.num_tokens = tokens;
  fetch.block_table = table;
  fetch.max_pages = (uint32_t)s->columns;
  fetch.batch = 1;
  fetch.cu_tokens = cu;
  fetch.content = rows;
  fetch.rope = rows + CONTENT * 4;
  fetch.content_stride = fetch.rope_stride = WIDTH * 4;
  expect(snapmla_fetch_dequant(s->context, s->cache, &fetch, NULL));
  read_from(keys, rows, (size_t)tokens * WIDTH * 4);
  free_memory(rows);
  free_memory(table);
  free_memory(cu);
  return keys;
}

/* Ragged queries of one decode, on the device, and as the doubles that the library quantises them to. */
struct queries {
  int32_t cu[BATCH + 1], most;
  char *content, *rope;                   /* [tokens][heads][...] of the session's type */
  uint8_t *q8; uint16_t *q_rope; float *q_scale; /* quantised, on the device */
  double *rows;                           /* [tokens * heads][WIDTH] */
};

static struct queries make_queries(const struct session *s, const int q_lens[BATCH]) {
  struct queries q;
  struct snapmla_q_quant_params params = SNAPMLA_Q_QUANT_PARAMS_INIT;
  size_t rows, row, element = size_of(s->in);
  int b, d;
  q.cu[0] = q.most = 0;
  for (b = 0; b < BATCH; b++) {
    q.cu[b + 1] = q.cu[b] + q_lens[b];
    q.most = q_lens[b] > q.most ? q_lens[b] : q.most;
  }
  rows = (size_t)q.cu[BATCH] * s->heads;
  {
    char *content = (char *)malloc(rows * CONTENT * element), *rope = (char *)malloc(rows * ROPE * element);
    uint8_t *q8 = (uint8_t *)malloc(rows * CONTENT);
    uint16_t *q_rope = (uint16_t *)malloc(rows * ROPE * 2);
    float *q_scale = (float *)malloc(rows * 4);
    for (row = 0; row < rows; row++) {
      for (d = 0; d < WIDTH; d++) {
        char *to = d < CONTENT ? content + (row * CONTENT + (size_t)d) * element
                               : rope + (row * ROPE + (size_t)(d - CONTENT)) * element;
        encode(to, exact_number(), s->in);
      }
    }
    q.content = (char *)new_copy(content, rows * CONTENT * element);
    q.rope = (char *)new_copy(rope, rows * ROPE * element);
    q.q8 = (uint8_t *)new_memory(rows * CONTENT);
    q.q_rope = (uint16_t *)new_memory(rows * ROPE * 2);
    q.q_scale = (float *)new_memory(rows * 4);
    params.dtype = s->in;
    params.num_heads = s->heads;
    params.num_tokens = q.cu[BATCH];
    params.content = q.content;
    params.rope = q.rope;
    params.q_content = q.q8;
    params.q_rope = q.q_rope;
    params.q_scale = q.q_scale;
    expect(snapmla_q_quant(s->context, &params, NULL));
    read_from(q8, q.q8, rows * CONTENT);
    read_from(q_rope, q.q_rope, rows * ROPE * 2);
    read_from(q_scale, q.q_scale, rows * 4);
    q.rows = (double *)malloc(rows * WIDTH * sizeof(double));
    for (row = 0; row < rows; row++) {
      dequantise(q.rows + row * WIDTH, q8 + row * CONTENT, q_rope + row * ROPE, q_scale[row]);
    }
    free(content);
    free(rope);
    free(q8);
    free(q_rope);
    free(q_scale);
  }
  return q;
}

static void free_queries(struct queries *q) {
  free_memory(q->content);
  free_memory(q->rope);
  free_memory(q->q8);
  free_memory(q->q_rope);
  free_memory(q->q_scale);
  free(q->rows);
}

static struct snapmla_decode_params decode_params(const struct session *s, const struct queries *q, int layer) {
  struct snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  limits.max_batch = BATCH;
  limits.max_q_len = (uint32_t)q->most;
  limits.max_heads = s->heads;
  limits.max_seq_len = (uint32_t)s->columns * s->page_size;
  expect(snapmla_decode_workspace_size(s->context, &limits, &params.workspace_size));
  params.workspace = params.workspace_size == 0 ? NULL : new_memory((size_t)params.workspace_size);
  params.flags = SNAPMLA_DECODE_CAUSAL;
  params.layer = layer;
  params.batch = BATCH;
  params.q_len = (uint32_t)q->most;
  params.num_heads = s->heads;
  params.softmax_scale = 0.0721688f;
  params.q_dtype = s->in;
  params.q_content = q->content;
  params.q_rope = q->rope;
  params.cu_q_lens = (const int32_t *)new_copy(q->cu, sizeof q->cu);
  params.seq_lens = (const int32_t *)new_copy(s->lengths, sizeof s->lengths);
  params.block_table = (const int32_t *)new_copy(s->table, sizeof(int32_t) * BATCH * (size_t)(s->columns + 1));
  params.block_table_stride = (int64_t)sizeof(int32_t) * (s->columns + 1);
  params.max_pages = (uint32_t)s->columns;
  params.out_dtype = s->out;
  return params;
}

/* Decodes into heads-first output with gaps, twice, raw and quantised; checks every row, the gaps and the repeat. */
static void decode(const struct session *s, int layer, const int q_lens[BATCH]) {
  struct queries q = make_queries(s, q_lens);
  struct snapmla_decode_params params = decode_params(s, &q, layer);
  const size_t element = size_of(s->out), row_bytes = CONTENT * element + 16;
  const size_t tokens = (size_t)q.cu[BATCH], bytes = tokens * s->heads * row_bytes;
  char *out = (char *)malloc(bytes), *again = (char *)malloc(bytes);
  float *lse = (float *)malloc(tokens * s->heads * 4);
  int b, i, d, h;
  params.out = new_memory(bytes);
  params.out_token_stride = (int64_t)row_bytes;
  params.out_head_stride = (int64_t)(row_bytes * tokens);
  params.lse = (float *)new_memory(tokens * s->heads * 4);
  params.lse_token_stride = 4;
  params.lse_head_stride = (int64_t)(4 * tokens);
  expect(snapmla_decode(s->context, s->cache, &params, NULL));
  read_from(out, params.out, bytes);
  read_from(lse, params.lse, tokens * s->heads * 4);

  for (b = 0; b < BATCH; b++) {
    float *keys = keys_of(s, layer, b);
    for (i = 0; i < q_lens[b]; i++) {
      for (h = 0; h < (int)s->heads; h++) {
        const size_t token = (size_t)(q.cu[b] + i), place = (size_t)h * tokens + token;
        const int attended = s->lengths[b] - q_lens[b] + i + 1;
        const char *row = out + place * row_bytes;
        float got[CONTENT];
        double wanted[CONTENT], wanted_lse;
        wanted_lse = attend(wanted, q.rows + (token * s->heads + (size_t)h) * WIDTH, keys, attended, 0.0721688);
        for (d = 0; d < CONTENT; d++) {
          got[d] = (float)decode_number(row + (size_t)d * element, s->out);
          CHECK(attended > 0 || got[d] == 0.0f);
        }
        for (d = 0; d < 16; d++) {
          CHECK((uint8_t)row[CONTENT * element + (size_t)d] == 255);
        }
        if (attended > 0) {
          /* Tensor cores round probabilities to E4M3 and logits to about 14 bits. */
          CHECK(distance(got, wanted, CONTENT) < (cuda.library != NULL ? 0.07 : 0.05));
          CHECK(fabs((double)lse[place] - wanted_lse) < (cuda.library != NULL ? 6e-3 * fmax(1.0, fabs(wanted_lse)) : 1e-4));
        } else {
          CHECK(isinf(lse[place]) && lse[place] < 0.0f);
        }
      }
    }
    free(keys);
  }

  params.q_dtype = SNAPMLA_DTYPE_QUANTISED;
  params.q_content = q.q8;
  params.q_rope = q.q_rope;
  params.q_scale = q.q_scale;
  expect(snapmla_decode(s->context, s->cache, &params, NULL));
  read_from(again, params.out, bytes);
  CHECK(memcmp(out, again, bytes) == 0);

  if (params.workspace_size > 0) {
    params.workspace_size--;
    CHECK(snapmla_decode(s->context, s->cache, &params, NULL) == SNAPMLA_STATUS_WORKSPACE_TOO_SMALL);
  }
  free_memory(params.workspace);
  free_memory(params.cu_q_lens);
  free_memory(params.seq_lens);
  free_memory(params.block_table);
  free_memory(params.out);
  free_memory(params.lse);
  free_queries(&q);
  free(out);
  free(again);
  free(lse);
}

/* A page moved by the caller's own copies, as in preemption, and a sequence's first records by the library's. */
static void move_pages(struct session *s) {
  const size_t bytes = (size_t)s->page_size * SNAPMLA_RECORD_BYTES;
  const int64_t page_stride = s->interleaved ? s->geometry.page_stride : (int64_t)bytes;
  const int64_t layer_stride = s->interleaved ? s->geometry.layer_stride : page_stride * s->geometry.num_pages;
  struct snapmla_records_copy_params copy = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
  char *page = (char *)malloc(bytes), *base = (char *)s->geometry.memory;
  int64_t *from = (int64_t *)malloc(s->page_size * 8), *to = (int64_t *)malloc(s->page_size * 8);
  const int32_t old = s->table[0], last = s->table[s->columns - 1];
  uint32_t i, layer;
  /* Page 0 is nobody's. */
  for (i = 0; i < s->page_size; i++) {
    from[i] = (int64_t)old * s->page_size + i;
    to[i] = i;
  }
  copy.layer = SNAPMLA_ALL_LAYERS;
  copy.num_records = s->page_size;
  copy.src_slots = (const int64_t *)new_copy(from, s->page_size * 8);
  copy.dst_slots = (const int64_t *)new_copy(to, s->page_size * 8);
  expect(snapmla_records_copy(s->context, s->cache, &copy, NULL));
  for (layer = 0; layer < s->layers; layer++) {
    read_from(page, base + layer * layer_stride, bytes);
    write_to(base + layer * layer_stride + last * page_stride, page, bytes);
    memset(page, 255, bytes);
    write_to(base + layer * layer_stride + old * page_stride, page, bytes);
  }
  s->table[0] = last;
  s->table[s->columns - 1] = old;
  free_memory(copy.src_slots);
  free_memory(copy.dst_slots);
  free(page);
  free(from);
  free(to);
}

static void run(snapmla_context *context, uint32_t page_size, int interleaved, uint32_t heads, snapmla_dtype in,
                snapmla_dtype out) {
  static const int prompts[2][BATCH] = {{33, 0, 100, 3}, {97, 0, 156, 2}};
  static const int steps[3][BATCH] = {{1, 1, 1, 1}, {4, 3, 0, 2}, {2, 2, 2, 8}};
  struct session s;
  int layer, i, b;
  memset(&s, 0, sizeof s);
  s.context = context;
  s.page_size = page_size;
  s.layers = 2;
  s.interleaved = interleaved;
  s.heads = heads;
  s.in = in;
  s.out = out;
  open_session(&s);
  for (i = 0; i < 5; i++) {
    const int *counts = i < 2 ? prompts[i] : steps[i - 2];
    for (layer = 0; layer < (int)s.layers; layer++) {
      append(&s, layer, counts);
    }
    for (b = 0; b < BATCH; b++) {
      s.lengths[b] += counts[b];
    }
    for (layer = 0; i >= 2 && layer < (int)s.layers; layer++) {
      decode(&s, layer, counts);
    }
    if (i == 3) {
      move_pages(&s);
    }
  }
  /* More queries than tokens: the first attend to nothing. */
  s.lengths[1] = 1;
  decode(&s, 0, steps[1]);
  close_session(&s);
}

/* Parts of a softmax with and without keys, merged. */
static void merge(snapmla_context *context) {
  enum { PARTS = 3 };
  static float parts[PARTS][CONTENT], out[CONTENT];
  const float logs[PARTS] = {0.5f, -INFINITY, -1.0f};
  const double sum = exp(0.5) + exp(-1.0);
  struct snapmla_merge_params params = SNAPMLA_MERGE_PARAMS_INIT;
  double wanted[CONTENT];
  float lse;
  int i, d;
  for (d = 0; d < CONTENT; d++) {
    for (i = 0; i < PARTS; i++) {
      parts[i][d] = i == 1 ? NAN : exact_number();
    }
    wanted[d] = (exp(0.5) * (double)parts[0][d] + exp(-1.0) * (double)parts[2][d]) / sum;
  }
  params.num_parts = PARTS;
  params.num_heads = 1;
  params.num_tokens = 1;
  params.parts_dtype = params.out_dtype = SNAPMLA_DTYPE_F32;
  params.parts = new_copy(parts, sizeof parts);
  params.parts_lse = (const float *)new_copy(logs, sizeof logs);
  params.out = new_memory(sizeof out);
  params.lse = (float *)new_memory(sizeof lse);
  expect(snapmla_merge(context, &params, NULL));
  read_from(out, params.out, sizeof out);
  read_from(&lse, params.lse, sizeof lse);
  CHECK(distance(out, wanted, CONTENT) < 1e-6 && fabs((double)lse - log(sum)) < 1e-6);
  free_memory(params.parts);
  free_memory(params.parts_lse);
  free_memory(params.out);
  free_memory(params.lse);
}

/* Threads that share a context and a cache, each with a sequence, a workspace and an output of its own. */
static struct session shared;

static void *decode_alone(void *argument) {
  const int sequence = *(const int *)argument;
  struct snapmla_decode_params params;
  struct queries q;
  const int q_lens[BATCH] = {1, 1, 1, 1};
  float first[CONTENT], again[CONTENT];
  int round;
  if (cuda.library != NULL) {
    CHECK(cuda.set_current(cuda.context) == 0);
  }
  q.content = (char *)new_copy(memset(first, 0, sizeof first), sizeof first);
  q.rope = (char *)new_copy(first, ROPE * 4);
  q.most = 1;
  memcpy(q.cu, q_lens, 0);
  for (round = 0; round <= BATCH; round++) {
    q.cu[round] = round;
  }
  params = decode_params(&shared, &q, 0);
  free_memory(params.cu_q_lens);
  params.cu_q_lens = NULL;
  params.batch = 1;
  params.seq_lens += sequence;
  params.block_table += sequence * (shared.columns + 1);
  params.out = new_memory(sizeof first);
  for (round = 0; round < 20; round++) {
    expect(snapmla_decode(shared.context, shared.cache, &params, NULL));
    read_from(round == 0 ? first : again, params.out, sizeof first);
    CHECK(round == 0 || memcmp(first, again, sizeof first) == 0);
    /* Messages are each thread's own. */
    params.num_heads = 129 + (uint32_t)sequence;
    refused(snapmla_decode(shared.context, shared.cache, &params, NULL), SNAPMLA_STATUS_INVALID_ARGUMENT, "num_heads");
    params.num_heads = 1;
  }
  free_memory(params.workspace);
  free_memory(params.seq_lens - sequence);
  free_memory(params.block_table - sequence * (shared.columns + 1));
  free_memory(params.out);
  free_memory(q.content);
  free_memory(q.rope);
  return NULL;
}

static void threads(snapmla_context *context) {
  static const int counts[BATCH] = {40, 80, 120, 160}, numbers[BATCH] = {0, 1, 2, 3};
  pthread_t thread[BATCH];
  int i;
  shared.context = context;
  shared.page_size = 64;
  shared.layers = 1;
  shared.heads = 1;
  shared.in = shared.out = SNAPMLA_DTYPE_F32;
  open_session(&shared);
  append(&shared, 0, counts);
  memcpy(shared.lengths, counts, sizeof counts);
  for (i = 0; i < BATCH; i++) {
    CHECK(pthread_create(&thread[i], NULL, decode_alone, (void *)(uintptr_t)&numbers[i]) == 0);
  }
  for (i = 0; i < BATCH; i++) {
    CHECK(pthread_join(thread[i], NULL) == 0);
  }
  close_session(&shared);
}

static void callers_of_other_headers(snapmla_context *context) {
  struct {
    struct snapmla_context_info info;
    uint32_t newer[4];
  } info;
  struct {
    struct snapmla_decode_limits limits;
    uint32_t newer;
  } limits;
  const struct snapmla_decode_limits initial = SNAPMLA_DECODE_LIMITS_INIT;
  uint64_t size = 0;
  memset(&info, 255, sizeof info);
  info.info.struct_size = sizeof info;
  expect(snapmla_context_describe(context, &info.info));
  CHECK(info.newer[0] == UINT32_MAX && info.info.name[0] != '\0');
  limits.limits = initial;
  limits.limits.max_batch = limits.limits.max_seq_len = 1;
  limits.limits.struct_size = sizeof limits;
  limits.newer = 0;
  expect(snapmla_decode_workspace_size(context, &limits.limits, &size));
  limits.newer = 1;
  CHECK(snapmla_decode_workspace_size(context, &limits.limits, &size) == SNAPMLA_STATUS_VERSION_MISMATCH);
  limits.limits.struct_size = 3;
  refused(snapmla_decode_workspace_size(context, &limits.limits, &size), SNAPMLA_STATUS_INVALID_ARGUMENT,
          "struct_size");
}

int main(int count, char **arguments) {
  struct snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
  struct snapmla_context_info info = SNAPMLA_CONTEXT_INFO_INIT;
  snapmla_context *context = NULL;
  const int on_cuda = count > 1 && strcmp(arguments[1], "cuda") == 0;
  if (on_cuda) {
    open_cuda();
  }
  params.flags = SNAPMLA_CONTEXT_CHECK_POINTERS;
  params.backend = on_cuda ? SNAPMLA_BACKEND_CUDA : SNAPMLA_BACKEND_CPU;
  params.cpu_threads = 2;
  expect(snapmla_context_create(&params, &context));
  expect(snapmla_context_describe(context, &info));

  run(context, 64, 0, 16, SNAPMLA_DTYPE_BF16, SNAPMLA_DTYPE_BF16);
  run(context, 64, 1, 5, SNAPMLA_DTYPE_F32, SNAPMLA_DTYPE_F32);
  run(context, 16, 1, 3, SNAPMLA_DTYPE_F16, SNAPMLA_DTYPE_F32);
  run(context, 32, 0, 1, SNAPMLA_DTYPE_BF16, SNAPMLA_DTYPE_F16);
  run(context, 128, 1, 20, SNAPMLA_DTYPE_F32, SNAPMLA_DTYPE_BF16);
  merge(context);
  threads(context);
  callers_of_other_headers(context);

  expect(snapmla_context_destroy(context));
  refused(snapmla_context_destroy(context), SNAPMLA_STATUS_INVALID_HANDLE, "context");
  CHECK(snapmla_context_create(NULL, &context) == SNAPMLA_STATUS_INVALID_ARGUMENT && context == NULL);
  printf("%s: every answer agrees\n", info.name);
  return 0;
}
