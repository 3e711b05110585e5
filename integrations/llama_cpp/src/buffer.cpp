#include "buffer.h"

#include "cache.h"
#include "device.h"
#include "ggml-backend-impl.h"
#include "log.h"
#include "rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace snapmla_ggml {

static const size_t ALIGNMENT = 256;

namespace {

// What a buffer owns.
struct Memory {
    explicit Memory(void * base) : base(base) {}
    ~Memory() { std::free(base); }
    Memory(const Memory &) = delete;
    Memory & operator=(const Memory &) = delete;

    void * base;
    // Translates cells when they are read and written from outside: one thread, so that it stays out of the way.
    Engine engine{1};
    std::mutex engine_in_use;
};

} // namespace

static Memory & memory_of(ggml_backend_buffer_t buffer) {
    return *static_cast<Memory *>(buffer->context);
}

// Runs what may throw; a failure goes to the log, since ggml's callbacks return nothing.
template <typename Work> static bool guarded(const char * what, const ggml_tensor * tensor, Work work) noexcept {
    try {
        work();
        return true;
    } catch (const std::exception & error) {
        log(GGML_LOG_LEVEL_ERROR, "snapmla: %s %s: %s\n", what, tensor->name, error.what());
        return false;
    }
}

// Bytes from the first nominal row of the cache.
static size_t nominal_position(const ggml_tensor * tensor, size_t offset) {
    return static_cast<const char *>(tensor->data) - static_cast<const char *>(root_of(tensor)->data) + offset;
}

static void free_buffer(ggml_backend_buffer_t buffer) {
    delete &memory_of(buffer);
}

static void * get_base(ggml_backend_buffer_t buffer) {
    return memory_of(buffer).base;
}

// The place for a refusal: a failure here makes the engine give up its cache with an error, where a failure of
// supports_op would make it abort.
static ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor * tensor) {
    if (!is_any_cache(tensor)) {
        return GGML_STATUS_SUCCESS;
    }
    if (const char * why = cache_refusal(tensor)) {
        log(GGML_LOG_LEVEL_ERROR, "snapmla: %s (%s, rows of %lld) %s\n", tensor->name, ggml_type_name(tensor->type),
            static_cast<long long>(tensor->ne[0]), why);
        return GGML_STATUS_FAILED;
    }
    return GGML_STATUS_SUCCESS;
}

static void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor * tensor, const void * data, size_t offset, size_t size) {
    if (!in_cache(tensor)) {
        memcpy(static_cast<char *>(tensor->data) + offset, data, size);
        return;
    }
    Memory & memory = memory_of(buffer);
    const std::lock_guard<std::mutex> lock(memory.engine_in_use);
    guarded("writing", tensor, [&] {
        write_nominal(memory.engine, root_of(tensor), data, nominal_position(tensor, offset), size);
    });
}

static void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor * tensor, void * data, size_t offset, size_t size) {
    if (!in_cache(tensor)) {
        memcpy(data, static_cast<const char *>(tensor->data) + offset, size);
        return;
    }
    Memory & memory = memory_of(buffer);
    const std::lock_guard<std::mutex> lock(memory.engine_in_use);
    const bool done = guarded("reading", tensor, [&] {
        read_nominal(memory.engine, root_of(tensor), data, nominal_position(tensor, offset), size);
    });
    if (!done) {
        memset(data, 0, size);
    }
}

static void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor * tensor, uint8_t value, size_t offset, size_t size) {
    if (!in_cache(tensor)) {
        memset(static_cast<char *>(tensor->data) + offset, value, size);
        return;
    }
    guarded("filling", tensor, [&] {
        const std::vector<uint8_t> bytes(size, value);
        set_tensor(buffer, tensor, bytes.data(), offset, size);
    });
}

static bool cpy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor * src, ggml_tensor * dst) {
    if (!in_cache(src) || !in_cache(dst)) {
        return false;
    }
    Memory & memory = memory_of(buffer);
    const std::lock_guard<std::mutex> lock(memory.engine_in_use);
    bool copied = false;
    return guarded("copying to", dst, [&] { copied = copy_cells(memory.engine, src, dst); }) && copied;
}

static void clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(memory_of(buffer).base, value, buffer->size);
}

static const char * buffer_type_name(ggml_backend_buffer_type_t) {
    return "SnapMLA";
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    void * base = std::aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (base == nullptr) {
        log(GGML_LOG_LEVEL_ERROR, "snapmla: no memory for a buffer of %zu bytes\n", size);
        return nullptr;
    }
    ggml_backend_buffer_i functions = {};
    functions.free_buffer = free_buffer;
    functions.get_base = get_base;
    functions.init_tensor = init_tensor;
    functions.memset_tensor = memset_tensor;
    functions.set_tensor = set_tensor;
    functions.get_tensor = get_tensor;
    functions.cpy_tensor = cpy_tensor;
    functions.clear = clear;
    Memory * memory = new (std::nothrow) Memory(base);
    if (memory == nullptr) {
        std::free(base);
        return nullptr;
    }
    return ggml_backend_buffer_init(buft, functions, memory, size);
}

static size_t get_alignment(ggml_backend_buffer_type_t) {
    return ALIGNMENT;
}

// A cache of nominal rows smaller than a record takes what its records take.
static size_t get_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * tensor) {
    const size_t nominal = ggml_nbytes(tensor);
    if (!is_any_cache(tensor) || cache_refusal(tensor) != nullptr) {
        return nominal;
    }
    return std::max<size_t>(nominal, cache_bytes(tensor));
}

ggml_backend_buffer_type_t buffer_type() {
    static ggml_backend_buffer_type type = [] {
        ggml_backend_buffer_type type = {};
        type.iface.get_name = buffer_type_name;
        type.iface.alloc_buffer = alloc_buffer;
        type.iface.get_alignment = get_alignment;
        type.iface.get_alloc_size = get_alloc_size;
        type.device = device();
        return type;
    }();
    return &type;
}

} // namespace snapmla_ggml
