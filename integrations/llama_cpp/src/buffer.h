// Memory of the module: host memory in which cache tensors lie as records, and every other tensor as ggml has it.
#pragma once

#include "ggml-backend.h"

namespace snapmla_ggml {

ggml_backend_buffer_type_t buffer_type();

} // namespace snapmla_ggml
