// Messages go to whoever listens to ggml's: the module itself never prints.
#pragma once

#include "ggml.h"

namespace snapmla_ggml {

__attribute__((format(printf, 2, 3))) void log(enum ggml_log_level level, const char * format, ...);

} // namespace snapmla_ggml
