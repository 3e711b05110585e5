/*
 * The library opened as a plug-in would be, by its run-time name, and closed again, three times over; a thread that has its
 * own message ends after the library is closed.
 */
#include "snapmla.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static void *library;
static pthread_barrier_t closed;

static void look_up(void *function, const char *name) {
  void *found = dlsym(library, name);
  CHECK(found != NULL);
  memcpy(function, &found, sizeof found);
}

static void *fail(void *unused) {
  snapmla_status (*cache_size)(const struct snapmla_cache_params *, uint64_t *);
  const char *(*message)(void);
  look_up(&cache_size, "snapmla_cache_size");
  look_up(&message, "snapmla_last_error_message");
  CHECK(strcmp(message(), "") == 0);
  CHECK(cache_size(NULL, NULL) == SNAPMLA_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(message(), "NULL") != NULL);
  pthread_barrier_wait(&closed);
  pthread_barrier_wait(&closed);
  return unused;
}

int main(void) {
  int round;
  CHECK(pthread_barrier_init(&closed, NULL, 2) == 0);
  for (round = 0; round < 3; round++) {
    snapmla_status (*create)(const struct snapmla_context_params *, snapmla_context **);
    snapmla_status (*destroy)(snapmla_context *);
    uint32_t (*abi_version)(void);
    struct snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
    snapmla_context *context = NULL;
    pthread_t thread;
    library = dlopen("libsnapmla.so.0", RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    look_up(&create, "snapmla_context_create");
    look_up(&destroy, "snapmla_context_destroy");
    look_up(&abi_version, "snapmla_abi_version");
    CHECK(abi_version() >= SNAPMLA_ABI_VERSION);
    params.backend = SNAPMLA_BACKEND_CPU;
    params.cpu_threads = 3;
    CHECK(create(&params, &context) == SNAPMLA_STATUS_OK);
    CHECK(pthread_create(&thread, NULL, fail, NULL) == 0);
    pthread_barrier_wait(&closed);
    CHECK(destroy(context) == SNAPMLA_STATUS_OK);
    CHECK(dlclose(library) == 0);
    pthread_barrier_wait(&closed);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  CHECK(pthread_barrier_destroy(&closed) == 0);
  return 0;
}
