#include "device.h"

#include "buffer.h"
#include "cache.h"
#include "engine.h"
#include "ggml-backend-impl.h"
#include "log.h"
#include "module.h"
#include "ops.h"

#include <new>

namespace snapmla_ggml {

static bool supported(const ggml_tensor * op) {
    switch (op->op) {
        // Nothing is computed for these.
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
            return true;
        case GGML_OP_SET_ROWS:
            return set_rows_supported(op);
        case GGML_OP_FLASH_ATTN_EXT:
            return attention_supported(op);
        case GGML_OP_CPY:
            return copy_supported(op);
        case GGML_OP_ROPE:
            return rope_supported(op);
        default:
            return false;
    }
}

static void compute(Engine & engine, ggml_tensor * op) {
    switch (op->op) {
        case GGML_OP_SET_ROWS:
            return set_rows(engine, op);
        case GGML_OP_FLASH_ATTN_EXT:
            return attention(engine, op);
        case GGML_OP_CPY:
            return copy(engine, op);
        case GGML_OP_ROPE:
            return rope(engine, op);
        default:
            return;
    }
}

static Engine & engine_of(ggml_backend_t backend) {
    return *static_cast<Engine *>(backend->context);
}

static ggml_status graph_compute(ggml_backend_t backend, ggml_cgraph * graph) {
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        try {
            if (ggml_nelements(node) > 0) {
                compute(engine_of(backend), node);
            }
        } catch (const std::bad_alloc &) {
            log(GGML_LOG_LEVEL_ERROR, "snapmla: %s of %s: out of memory\n", ggml_op_name(node->op), node->name);
            return GGML_STATUS_ALLOC_FAILED;
        } catch (const std::exception & error) {
            log(GGML_LOG_LEVEL_ERROR, "snapmla: %s of %s: %s\n", ggml_op_name(node->op), node->name, error.what());
            return GGML_STATUS_FAILED;
        }
    }
    return GGML_STATUS_SUCCESS;
}

static const char * backend_name(ggml_backend_t) {
    return "SnapMLA";
}

static void backend_free(ggml_backend_t backend) {
    delete static_cast<Engine *>(backend->context);
    delete backend;
}

static ggml_guid_t guid() {
    static ggml_guid bytes = {0x53, 0x6e, 0x61, 0x70, 0x4d, 0x4c, 0x41, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x63, 0x70, 0x75};
    return &bytes;
}

static ggml_backend_t init_backend(ggml_backend_dev_t dev, const char *) {
    ggml_backend_t backend = new (std::nothrow) ggml_backend();
    Engine * engine = new (std::nothrow) Engine();
    if (backend == nullptr || engine == nullptr) {
        delete backend;
        delete engine;
        return nullptr;
    }
    backend->guid = guid();
    backend->iface.get_name = backend_name;
    backend->iface.free = backend_free;
    backend->iface.graph_compute = graph_compute;
    backend->device = dev;
    backend->context = engine;
    return backend;
}

void set_n_threads(ggml_backend_t backend, int n_threads) {
    engine_of(backend).set_threads(n_threads);
}

static const char * device_name(ggml_backend_dev_t) {
    return "SnapMLA";
}

static const char * device_description(ggml_backend_dev_t) {
    return "FP8 latent cache and attention of libsnapmla";
}

// None of its own: engines then count the host's.
static void device_memory(ggml_backend_dev_t, size_t * free, size_t * total) {
    *free = *total = 0;
}

// A GPU to ggml: only then does an engine keep a layer's cache in the device's own memory.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void device_props(ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
    *props = {};
    props->name = device_name(dev);
    props->description = device_description(dev);
    props->type = device_type(dev);
    device_memory(dev, &props->memory_free, &props->memory_total);
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t) {
    return buffer_type();
}

static bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) {
    return supported(op);
}

// Operands may lie in host memory: only results must be ours.
static bool supports_buft(ggml_backend_dev_t, ggml_backend_buffer_type_t buft) {
    return buft == buffer_type() || ggml_backend_buft_is_host(buft);
}

ggml_backend_dev_t device() {
    static ggml_backend_device device = [] {
        ggml_backend_device device = {};
        device.iface.get_name = device_name;
        device.iface.get_description = device_description;
        device.iface.get_memory = device_memory;
        device.iface.get_type = device_type;
        device.iface.get_props = device_props;
        device.iface.init_backend = init_backend;
        device.iface.get_buffer_type = device_buffer_type;
        device.iface.supports_op = supports_op;
        device.iface.supports_buft = supports_buft;
        device.reg = registration();
        return device;
    }();
    return &device;
}

} // namespace snapmla_ggml
