/* A stand-in for libcuda.so.1: keeps a thread's context stack, records launches and memsets, fails on demand.
 *
 * Only what src/cuda/driver.rs looks up, plus `fake_*` for the tests, which open the same file. One thread at a time. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef void *CUcontext, *CUlibrary, *CUkernel, *CUfunction, *CUstream;

enum {
    MAX_ARGS = 512,
    MAX_RECORDS = 256,
    MAX_KERNELS = 256,
    MAX_DEVICES = 4,
    NOT_FOUND = 500,
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
};

/* Mirrored in harness.rs. */
typedef struct {
    char kernel[64];
    uint32_t grid[3], block[3], shared, num_attributes;
    uint32_t attribute_ids[4], attribute_values[4];
    CUstream stream;
    CUcontext context;
    uint8_t args[MAX_ARGS];
} Launch;

typedef struct {
    uint64_t dst, pitch, width, height;
    uint32_t value;
    CUstream stream;
    CUcontext context;
} Memset;

typedef struct {
    char name[64];
    uint32_t num_binds;     /* how often its code was loaded with a context current */
    int32_t shared_allowed; /* dynamic shared memory set on it */
} Kernel;

/* What the tests set. */
static int version = 13000, major = 9, minor = 0, device_count = 2, host_page_tables = 0;
static int elf_result = 0;
static char failing_call[64];
static int failing_code, failing_times;
static size_t args_size;
static int (*emulation)(const char *name, const uint32_t *grid, const uint32_t *block, const void *args);

/* What they read. */
static Launch launches[MAX_RECORDS];
static Memset memsets[MAX_RECORDS];
static Kernel kernels[MAX_KERNELS];
static uint32_t num_launches, num_memsets, num_kernels, num_libraries, num_pushes;
static int32_t retains[MAX_DEVICES];

static CUcontext stack[16];
static uint32_t depth;
static char context_of[MAX_DEVICES];
static const uint8_t *library_code[MAX_RECORDS];

#define FAIL_ON_DEMAND()                                        \
    do {                                                        \
        if (failing_times > 0 && !strcmp(failing_call, __func__)) { \
            failing_times--;                                    \
            return failing_code;                                \
        }                                                       \
    } while (0)

void fake_set_version(int v) { version = v; }
void fake_set_capability(int a, int b) { major = a, minor = b; }
void fake_set_host_page_tables(int yes) { host_page_tables = yes; }
void fake_set_elf_result(int code) { elf_result = code; }
void fake_set_args_size(size_t size) { args_size = size; }
void fake_fail(const char *call, int code, int times) {
    strncpy(failing_call, call, sizeof failing_call - 1);
    failing_code = code, failing_times = times;
}
void fake_set_emulation(int (*run)(const char *, const uint32_t *, const uint32_t *, const void *)) { emulation = run; }
uint32_t fake_num_launches(void) { return num_launches; }
const Launch *fake_launch(uint32_t i) { return &launches[i]; }
uint32_t fake_num_memsets(void) { return num_memsets; }
const Memset *fake_memset(uint32_t i) { return &memsets[i]; }
uint32_t fake_num_kernels(void) { return num_kernels; }
const Kernel *fake_kernel(uint32_t i) { return &kernels[i]; }
uint32_t fake_num_libraries(void) { return num_libraries; }
uint32_t fake_num_pushes(void) { return num_pushes; }
int32_t fake_retains(int device) { return retains[device]; }
uint32_t fake_depth(void) { return depth; }
CUcontext fake_primary(int device) { return &context_of[device]; }
void fake_push(CUcontext context) { stack[depth++] = context; }

CUresult cuInit(unsigned flags) {
    (void)flags;
    FAIL_ON_DEMAND();
    return 0;
}
CUresult cuDriverGetVersion(int *v) {
    *v = version;
    return 0;
}
CUresult cuGetErrorName(int code, const char **name) {
    switch (code) {
    case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 201: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
    case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return 0;
    case 500: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    default: *name = NULL; return INVALID_VALUE;
    }
}
CUresult cuDeviceGetCount(int *count) {
    *count = device_count;
    return 0;
}
CUresult cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
CUresult cuDeviceGetName(char *name, int len, int device) {
    (void)device;
    strncpy(name, "Stand-in H200", len);
    return 0;
}
CUresult cuDeviceGetAttribute(int *value, unsigned attribute, int device) {
    (void)device;
    switch (attribute) {
    case 16: *value = 132; return 0;
    case 75: *value = major; return 0;
    case 76: *value = minor; return 0;
    case 100: *value = host_page_tables; return 0;
    default: return INVALID_VALUE;
    }
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, int device) {
    FAIL_ON_DEMAND();
    retains[device]++;
    *context = fake_primary(device);
    return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
    retains[device]--;
    return 0;
}
CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = depth ? stack[depth - 1] : NULL;
    return 0;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
    FAIL_ON_DEMAND();
    num_pushes++;
    stack[depth++] = context;
    return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (!depth) return INVALID_CONTEXT;
    *context = stack[--depth];
    return 0;
}

/* Images are real cubins, or what nvrtc.c makes: "FAKE" and the source. */
static int is_elf(const uint8_t *code) { return !memcmp(code, "\177ELF", 4); }
static size_t image_size(const uint8_t *code) {
    if (!is_elf(code)) return strlen((const char *)code);
    uint64_t section_headers;
    uint16_t entry_size, entries;
    memcpy(&section_headers, code + 40, 8);
    memcpy(&entry_size, code + 58, 2);
    memcpy(&entries, code + 60, 2);
    uint64_t program_headers;
    uint16_t program_entry_size, program_entries;
    memcpy(&program_headers, code + 32, 8);
    memcpy(&program_entry_size, code + 54, 2);
    memcpy(&program_entries, code + 56, 2);
    const uint64_t a = section_headers + (uint64_t)entry_size * entries;
    const uint64_t b = program_headers + (uint64_t)program_entry_size * program_entries;
    return a > b ? a : b;
}
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, unsigned *jit, void **jit_values, unsigned num_jit,
                           unsigned *options, void **values, unsigned num_options) {
    (void)jit, (void)jit_values, (void)num_jit, (void)options, (void)values, (void)num_options;
    FAIL_ON_DEMAND();
    if (is_elf(code) && elf_result) return elf_result;
    /* As the real one does: the caller's copy may go. */
    const size_t size = image_size(code);
    library_code[num_libraries] = memcpy(calloc(size + 1, 1), code, size);
    *library = (CUlibrary)(uintptr_t)++num_libraries;
    return 0;
}
CUresult cuLibraryUnload(CUlibrary library) {
    (void)library;
    return 0;
}
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    if (!library) return INVALID_VALUE;
    const uint8_t *code = library_code[(uintptr_t)library - 1];
    if (!memmem(code, image_size(code), name, strlen(name))) return NOT_FOUND;
    for (uint32_t i = 0; i < num_kernels; i++) {
        if (!strcmp(kernels[i].name, name)) {
            *kernel = &kernels[i];
            return 0;
        }
    }
    strncpy(kernels[num_kernels].name, name, sizeof kernels->name - 1);
    *kernel = &kernels[num_kernels++];
    return 0;
}
CUresult cuKernelSetAttribute(unsigned attribute, int value, CUkernel kernel, int device) {
    (void)device;
    if (attribute != 8) return INVALID_VALUE;
    ((Kernel *)kernel)->shared_allowed = value;
    return 0;
}
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    FAIL_ON_DEMAND();
    if (!depth) return INVALID_CONTEXT;
    ((Kernel *)kernel)->num_binds++;
    *function = kernel;
    return 0;
}
CUresult cuFuncGetAttribute(int *value, unsigned attribute, CUfunction function) {
    (void)attribute, (void)function;
    *value = 32;
    return 0;
}

typedef struct {
    uint32_t id;
    char pad[4];
    union {
        char pad[64];
        uint32_t flag;
    } value;
} Attribute;
typedef struct {
    uint32_t grid[3], block[3], shared;
    CUstream stream;
    Attribute *attributes;
    uint32_t num_attributes;
} Config;

CUresult cuLaunchKernelEx(const Config *config, CUfunction function, void **params, void **extra) {
    (void)extra;
    FAIL_ON_DEMAND();
    if (!depth) return INVALID_CONTEXT;
    const Kernel *kernel = function;
    if ((int32_t)config->shared > kernel->shared_allowed || config->num_attributes > 4) return INVALID_VALUE;
    Launch *launch = &launches[num_launches++ % MAX_RECORDS];
    memset(launch, 0, sizeof *launch);
    memcpy(launch->kernel, kernel->name, sizeof launch->kernel);
    memcpy(launch->grid, config->grid, sizeof launch->grid);
    memcpy(launch->block, config->block, sizeof launch->block);
    launch->shared = config->shared;
    launch->stream = config->stream;
    launch->num_attributes = config->num_attributes;
    for (uint32_t i = 0; i < config->num_attributes; i++) {
        launch->attribute_ids[i] = config->attributes[i].id;
        launch->attribute_values[i] = config->attributes[i].value.flag;
    }
    cuCtxGetCurrent(&launch->context);
    memcpy(launch->args, params[0], args_size);
    return emulation && emulation(launch->kernel, launch->grid, launch->block, params[0]) ? NOT_FOUND : 0;
}
CUresult cuMemsetD2D8Async(uint64_t dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream) {
    FAIL_ON_DEMAND();
    Memset *record = &memsets[num_memsets++ % MAX_RECORDS];
    *record = (Memset){.dst = dst, .pitch = pitch, .width = width, .height = height, .value = value, .stream = stream};
    return cuCtxGetCurrent(&record->context);
}

/* Addresses by their top digits: 0x1d... is device d's memory, 0x2... pinned host memory, 0x3... managed. */
CUresult cuPointerGetAttribute(void *data, unsigned attribute, uint64_t ptr) {
    FAIL_ON_DEMAND();
    const unsigned kind = ptr >> 44 & 15, device = ptr >> 40 & 15;
    if (kind < 1 || kind > 3) return INVALID_VALUE;
    switch (attribute) {
    case 2: *(int *)data = kind == 2 ? 1 : 2; return 0;
    case 8: *(char *)data = kind == 3; return 0;
    case 9: *(int *)data = device; return 0;
    default: return INVALID_VALUE;
    }
}
