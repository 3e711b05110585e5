// The bulk copy engine: plain copies without a tensor map.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// Copies `bytes` (a multiple of 16) from global to shared memory; completes on `barrier`.
__device__ __forceinline__ void bulk_copy_g2s(u32 dst, const void* src, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(barrier)
                 : "memory");
}

}  // namespace snapmla
