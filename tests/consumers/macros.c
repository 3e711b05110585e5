/* Compiled as C and as C++: the header may be included twice, streams pass uncast, initialisers say what they promise. */
#include "snapmla.h"
#include "snapmla.h"

#include <string.h>

#include "check.h"

typedef struct CUstream_st *cudaStream_t;

/* Everything but `skip` first bytes is zero. */
static int rest_is_zero(const void *value, size_t size, size_t skip) {
  const unsigned char *bytes = (const unsigned char *)value;
  size_t at;
  for (at = skip; at < size; at++) {
    if (bytes[at] != 0) {
      return 0;
    }
  }
  return 1;
}

#define ZERO_BUT_SIZE(value) ((value).struct_size == sizeof(value) && rest_is_zero(&(value), sizeof(value), 4))

int main(void) {
  const cudaStream_t theirs = NULL;
  const snapmla_stream ours = theirs;
  struct snapmla_context_params context = SNAPMLA_CONTEXT_PARAMS_INIT;
  struct snapmla_context_info info = SNAPMLA_CONTEXT_INFO_INIT;
  struct snapmla_cache_params cache = SNAPMLA_CACHE_PARAMS_INIT;
  struct snapmla_k_append_params k_append = SNAPMLA_K_APPEND_PARAMS_INIT;
  struct snapmla_q_quant_params q_quant = SNAPMLA_Q_QUANT_PARAMS_INIT;
  struct snapmla_records_copy_params records_copy = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
  struct snapmla_decode_limits limits = SNAPMLA_DECODE_LIMITS_INIT;
  struct snapmla_decode_params decode = SNAPMLA_DECODE_PARAMS_INIT;
  struct snapmla_fetch_params fetch = SNAPMLA_FETCH_PARAMS_INIT;
  struct snapmla_merge_params merge = SNAPMLA_MERGE_PARAMS_INIT;
  struct snapmla_support_query query = SNAPMLA_SUPPORT_QUERY_INIT;

  CHECK(ours == NULL);
  CHECK(strcmp(snapmla_version(), SNAPMLA_VERSION_STRING) == 0);
  CHECK(snapmla_abi_version() == SNAPMLA_ABI_VERSION);
  CHECK(strcmp(snapmla_last_error_message(), "") == 0);
  CHECK(strcmp(snapmla_status_string(SNAPMLA_STATUS_OK), "success") == 0);
  CHECK(strcmp(snapmla_status_string(12345), "unknown status") == 0);

  CHECK(ZERO_BUT_SIZE(context));
  CHECK(ZERO_BUT_SIZE(info));
  CHECK(cache.page_size == 64 && cache.num_layers == 1);
  cache.page_size = cache.num_layers = 0;
  CHECK(ZERO_BUT_SIZE(cache));
  CHECK(k_append.dtype == SNAPMLA_DTYPE_BF16);
  k_append.dtype = 0;
  CHECK(ZERO_BUT_SIZE(k_append));
  CHECK(q_quant.dtype == SNAPMLA_DTYPE_BF16);
  q_quant.dtype = 0;
  CHECK(ZERO_BUT_SIZE(q_quant));
  CHECK(ZERO_BUT_SIZE(records_copy));
  CHECK(limits.max_q_len == 1 && limits.max_heads == SNAPMLA_MAX_HEADS);
  limits.max_q_len = limits.max_heads = 0;
  CHECK(ZERO_BUT_SIZE(limits));
  CHECK(decode.q_len == 1 && decode.q_dtype == SNAPMLA_DTYPE_BF16 && decode.out_dtype == SNAPMLA_DTYPE_BF16);
  decode.q_len = decode.q_dtype = decode.out_dtype = 0;
  CHECK(ZERO_BUT_SIZE(decode));
  CHECK(fetch.dtype == SNAPMLA_DTYPE_BF16);
  fetch.dtype = 0;
  CHECK(ZERO_BUT_SIZE(fetch));
  CHECK(merge.parts_dtype == SNAPMLA_DTYPE_BF16 && merge.out_dtype == SNAPMLA_DTYPE_BF16);
  merge.parts_dtype = merge.out_dtype = 0;
  CHECK(ZERO_BUT_SIZE(merge));
  CHECK(query.content_dim == 512 && query.rope_dim == 64 && query.page_size == 64);
  CHECK(query.num_heads == 128 && query.q_len == 1 && query.decode_flags == 0);
  CHECK(query.in_dtype == SNAPMLA_DTYPE_BF16 && query.out_dtype == SNAPMLA_DTYPE_BF16);
  return 0;
}
