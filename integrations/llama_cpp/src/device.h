// The one device, and the backends ("streams" to ggml) made of it.
#pragma once

#include "ggml-backend.h"

namespace snapmla_ggml {

ggml_backend_dev_t device();

void set_n_threads(ggml_backend_t backend, int n_threads);

} // namespace snapmla_ggml
