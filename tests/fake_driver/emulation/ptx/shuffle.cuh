// cuda/ptx/shuffle.cuh for the host.
#pragma once

#include "ptx/types.cuh"
#include "ptx/warp.cuh"

namespace snapmla {

inline u32 warp_shuffle_xor_u32(u32 x, u32 mask) { return Warp::current->collective(Collective::SHUFFLE_XOR, x, mask); }
inline i64 warp_shuffle_i64(i64 x, u32 lane) {
    const u32 low = Warp::current->collective(Collective::SHUFFLE, u32(x), lane);
    const u32 high = Warp::current->collective(Collective::SHUFFLE, u32(u64(x) >> 32), lane);
    return i64(u64(high) << 32 | low);
}

}  // namespace snapmla
