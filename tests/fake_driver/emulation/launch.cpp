// The kernels that give a warp a row, compiled for the host: `emulate` runs one of them over a grid.
#include "device.h"

#include "fetch_dequant.cu"
#undef SNAPMLA_KERNEL
#include "k_append.cu"
#undef SNAPMLA_KERNEL
#include "merge.cu"
#undef SNAPMLA_KERNEL
#include "q_quant.cu"
#undef SNAPMLA_KERNEL
#include "records_copy.cu"

namespace {

using namespace snapmla;

template <class Args, void (*KERNEL)(Args)>
void typed(const void* args) {
    KERNEL(*static_cast<const Args*>(args));
}

struct Entry {
    const char* name;
    void (*run)(const void* args);
    size_t args_size;
};

#define ENTRY(name, Args) {#name, typed<const Args, name>, sizeof(Args)}
#define ENTRIES(name, Args) ENTRY(name##_bf16, Args), ENTRY(name##_f16, Args), ENTRY(name##_f32, Args)

const Entry ENTRIES_BY_NAME[] = {
    ENTRIES(snapmla_fetch_dequant, FetchArgs), ENTRIES(snapmla_k_append, KAppendArgs),
    ENTRIES(snapmla_merge, MergeArgs),         ENTRIES(snapmla_q_quant, QQuantArgs),
    ENTRY(snapmla_records_copy, RecordsCopyArgs),
};

}  // namespace

// 0, or 1 for a kernel that is not emulated.
extern "C" int emulate(const char* name, const uint32_t* grid, const uint32_t* block, const void* args) {
    for (const Entry& entry : ENTRIES_BY_NAME) {
        if (std::strcmp(entry.name, name) != 0) continue;
        static Warp warp;
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
                for (uint32_t i = 0; i < block[0] / WARP; i++) warp.run(i, entry.run, args);
            }
        }
        return 0;
    }
    return 1;
}
