#include "module.h"

#include "device.h"
#include "ggml-backend-impl.h"
#include "log.h"

#include <cstring>

static_assert(GGML_BACKEND_API_VERSION == 2 || GGML_BACKEND_API_VERSION == 3,
              "the module is written for versions 2 and 3 of ggml's backend interface");

namespace snapmla_ggml {

static const char * name(ggml_backend_reg_t) {
    return "SnapMLA";
}

static size_t device_count(ggml_backend_reg_t) {
    return 1;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t, size_t index) {
    return index == 0 ? device() : nullptr;
}

static void * get_proc_address(ggml_backend_reg_t, const char * function) {
    return strcmp(function, "ggml_backend_set_n_threads") == 0 ? reinterpret_cast<void *>(set_n_threads) : nullptr;
}

ggml_backend_reg_t registration() {
    static ggml_backend_reg registration = [] {
        ggml_backend_reg registration = {};
        registration.api_version = GGML_BACKEND_API_VERSION;
        registration.iface.get_name = name;
        registration.iface.get_device_count = device_count;
        registration.iface.get_device = get_device;
        registration.iface.get_proc_address = get_proc_address;
        return registration;
    }();
    return &registration;
}

// Operations and types are numbered anew from version to version, which the interface's version does not tell.
static bool numbered_alike() {
    return strcmp(ggml_op_name(GGML_OP_SET_ROWS), "SET_ROWS") == 0 && strcmp(ggml_op_name(GGML_OP_ROPE), "ROPE") == 0 &&
           strcmp(ggml_op_name(GGML_OP_CPY), "CPY") == 0 &&
           strcmp(ggml_op_name(GGML_OP_FLASH_ATTN_EXT), "FLASH_ATTN_EXT") == 0 &&
           strcmp(ggml_type_name(GGML_TYPE_Q8_0), "q8_0") == 0 && strcmp(ggml_type_name(GGML_TYPE_BF16), "bf16") == 0;
}

} // namespace snapmla_ggml

extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void) {
    if (!snapmla_ggml::numbered_alike()) {
        snapmla_ggml::log(GGML_LOG_LEVEL_ERROR,
                          "snapmla: this ggml numbers its operations otherwise than the headers the module was built "
                          "against: build the module against this engine's source\n");
        return nullptr;
    }
    return snapmla_ggml::registration();
}
