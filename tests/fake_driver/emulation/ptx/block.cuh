// cuda/ptx/block.cuh for the host.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

inline u32 block_index() { return blockIdx.x; }

}  // namespace snapmla
