/*
 * What a process does around the library: threads with small stacks, a caller's rounding mode, destruction under way,
 * messages that are kept, fork, exit.
 */
#include "snapmla.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { TOKENS = 300, HEADS = 4, PAGES = 5, THREADS = 4 };

static float content[TOKENS][512], rope[TOKENS][64], q[HEADS][512], q_rope[HEADS][64], expected[HEADS][512];
static uint64_t memory[PAGES * 64 * SNAPMLA_RECORD_BYTES / 8 + 2];
static snapmla_context *context;
static snapmla_cache *cache;

static void expect(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    fprintf(stderr, "%s: %s\n", snapmla_status_string(status), snapmla_last_error_message());
    exit(1);
  }
}

static void open_context(uint32_t threads) {
  struct snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
  struct snapmla_cache_params geometry = SNAPMLA_CACHE_PARAMS_INIT;
  params.backend = SNAPMLA_BACKEND_CPU;
  params.cpu_threads = threads;
  expect(snapmla_context_create(&params, &context));
  geometry.num_pages = PAGES;
  geometry.memory = (void *)(((uintptr_t)memory + 15) & ~(uintptr_t)15);
  expect(snapmla_cache_size(&geometry, &geometry.memory_size));
  expect(snapmla_cache_init(context, &geometry, NULL, &cache));
}

static void append(void) {
  struct snapmla_k_append_params params = SNAPMLA_K_APPEND_PARAMS_INIT;
  int64_t slots[TOKENS];
  int i;
  for (i = 0; i < TOKENS; i++) {
    slots[i] = i;
  }
  params.dtype = SNAPMLA_DTYPE_F32;
  params.num_tokens = TOKENS;
  params.content = content;
  params.rope = rope;
  params.slots = slots;
  expect(snapmla_k_append(context, cache, &params, NULL));
}

static snapmla_status decode(float *out, uint32_t heads) {
  static const int32_t length = TOKENS, pages[PAGES] = {0, 1, 2, 3, 4};
  struct snapmla_decode_params params = SNAPMLA_DECODE_PARAMS_INIT;
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  char *workspace;
  snapmla_status status;
  limits.max_batch = 1;
  limits.max_seq_len = PAGES * 64;
  params.batch = 1;
  params.num_heads = heads;
  params.softmax_scale = 0.05f;
  params.q_dtype = params.out_dtype = SNAPMLA_DTYPE_F32;
  params.q_content = q;
  params.q_rope = q_rope;
  params.seq_lens = &length;
  params.block_table = pages;
  params.max_pages = PAGES;
  params.out = out;
  status = snapmla_decode_workspace_size(context, &limits, &params.workspace_size);
  if (status != SNAPMLA_STATUS_OK) {
    return status;
  }
  workspace = (char *)malloc((size_t)params.workspace_size + 256);
  CHECK(workspace != NULL);
  params.workspace = (void *)(((uintptr_t)workspace + 255) & ~(uintptr_t)255);
  status = snapmla_decode(context, cache, &params, NULL);
  free(workspace);
  return status;
}

static void decode_and_compare(void) {
  float out[HEADS][512];
  memset(out, 255, sizeof out);
  expect(decode(out[0], HEADS));
  CHECK(memcmp(out, expected, sizeof out) == 0);
}

static void *whole_session(void *unused) {
  append();
  decode_and_compare();
  return unused;
}

static void small_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 64 * 1024) == 0);
  CHECK(pthread_create(&thread, &attributes, whole_session, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* Bits do not hang on the caller's mode, and the mode stays. */
static void rounding_mode(void) {
  CHECK(fesetround(FE_UPWARD) == 0);
  whole_session(NULL);
  CHECK(fegetround() == FE_UPWARD && fesetround(FE_TONEAREST) == 0);
}

/* One place for each thread, readable until the thread's last moment. */
static pthread_key_t at_the_end;

static void read_message(void *message) { CHECK(strstr((const char *)message, "num_heads 130") != NULL); }

static void *fail(void *unused) {
  float out[512];
  const char *message = snapmla_last_error_message();
  CHECK(message[0] == '\0');
  CHECK(decode(out, 129) == SNAPMLA_STATUS_INVALID_ARGUMENT && strstr(message, "num_heads 129") != NULL);
  CHECK(decode(out, 130) == SNAPMLA_STATUS_INVALID_ARGUMENT && snapmla_last_error_message() == message);
  CHECK(pthread_setspecific(at_the_end, message) == 0);
  return unused;
}

static void messages(void) {
  pthread_t thread;
  CHECK(pthread_key_create(&at_the_end, read_message) == 0);
  CHECK(pthread_create(&thread, NULL, fail, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* Calls inside a handle finish, later ones are told. */
static void *decode_until_destroyed(void *unused) {
  for (;;) {
    float out[HEADS][512];
    const snapmla_status status = decode(out[0], HEADS);
    if (status == SNAPMLA_STATUS_INVALID_HANDLE) {
      return unused;
    }
    CHECK(status == SNAPMLA_STATUS_OK && memcmp(out, expected, sizeof out) == 0);
  }
}

static void destroy_under_way(int context_first) {
  pthread_t threads[THREADS];
  int i;
  for (i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, decode_until_destroyed, NULL) == 0);
  }
  decode_and_compare();
  expect(context_first ? snapmla_context_destroy(context) : snapmla_cache_destroy(cache));
  for (i = 0; i < THREADS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  expect(context_first ? snapmla_cache_destroy(cache) : snapmla_context_destroy(context));
}

/* A child cannot use the parent's context, says so at once, and has its own. */
static void fork_with(uint32_t threads) {
  pid_t child;
  int status;
  open_context(threads);
  append();
  decode_and_compare();
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    float out[HEADS][512];
    alarm(60);
    CHECK(decode(out[0], HEADS) == SNAPMLA_STATUS_INVALID_HANDLE);
    CHECK(strstr(snapmla_last_error_message(), "process") != NULL);
    expect(snapmla_cache_destroy(cache));
    expect(snapmla_context_destroy(context));
    open_context(threads);
    whole_session(NULL);
    expect(snapmla_cache_destroy(cache));
    expect(snapmla_context_destroy(context));
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  decode_and_compare();
}

static void at_exit(void) {
  decode_and_compare();
  expect(snapmla_cache_destroy(cache));
  expect(snapmla_context_destroy(context));
}

int main(void) {
  int i, round;
  for (i = 0; i < TOKENS * 512; i++) {
    content[i / 512][i % 512] = (float)((i * 37) % 255 - 127) / 64.0f;
  }
  for (i = 0; i < HEADS * 512; i++) {
    q[i / 512][i % 512] = (float)((i * 11) % 63 - 31) / 32.0f;
  }
  open_context(2);
  append();
  expect(decode(expected[0], HEADS));
  small_stack();
  rounding_mode();
  messages();
  for (round = 0; round < 4; round++) {
    destroy_under_way(round % 2);
    open_context(2);
    append();
  }
  expect(snapmla_cache_destroy(cache));
  expect(snapmla_context_destroy(context));
  fork_with(1);
  expect(snapmla_cache_destroy(cache));
  expect(snapmla_context_destroy(context));
  fork_with(3);
  CHECK(atexit(at_exit) == 0);
  return 0;
}
