// What ggml finds when it loads the module.
#pragma once

#include "ggml-backend.h"

namespace snapmla_ggml {

ggml_backend_reg_t registration();

} // namespace snapmla_ggml
