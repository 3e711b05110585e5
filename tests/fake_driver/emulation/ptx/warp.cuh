// cuda/ptx/warp.cuh for the host.
#pragma once

#include "ptx/types.cuh"

namespace snapmla {

inline u32 lane_of() { return threadIdx.x % WARP; }
inline u32 warp_ballot(bool vote) { return Warp::current->collective(Collective::BALLOT, vote, 0); }
inline float warp_shuffle_xor(float x, u32 mask) {
    return __uint_as_float(Warp::current->collective(Collective::SHUFFLE_XOR, __float_as_uint(x), mask));
}
inline float warp_shuffle(float x, u32 lane) {
    return __uint_as_float(Warp::current->collective(Collective::SHUFFLE, __float_as_uint(x), lane));
}

}  // namespace snapmla
