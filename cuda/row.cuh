// The shape of the kernels that give a warp a row or two: small blocks spread a decode step's few rows over many SMs.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

// As in src/cuda/grid.rs.
constexpr u32 ROW_WARPS = 4;
constexpr u32 ROW_THREADS = ROW_WARPS * WARP;

__device__ __forceinline__ u32 lane_index() {
    return threadIdx.x % WARP;
}

// This warp's number in the grid: its row, where a warp has one; may lie past the end.
__device__ __forceinline__ i64 row_index() {
    return i64(blockIdx.x) * ROW_WARPS + threadIdx.x / WARP;
}

}  // namespace snapmla
