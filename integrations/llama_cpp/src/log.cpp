#include "log.h"

#include <cstdarg>
#include <cstdio>

namespace snapmla_ggml {

void log(enum ggml_log_level level, const char * format, ...) {
    ggml_log_callback callback = nullptr;
    void * user_data = nullptr;
    ggml_log_get(&callback, &user_data);
    if (callback == nullptr) {
        return;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    callback(level, text, user_data);
}

} // namespace snapmla_ggml
