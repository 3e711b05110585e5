// Where the partials of a sequence's splits lie in the workspace: slots, each of which has a place for every row group.
#pragma once

#include "decode/args.cuh"
#include "ptx/types.cuh"

namespace snapmla {

// With balanced splits a worker has at most one that does not begin its sequence (its first segment) and one that begins its
// sequence without ending it (its last): two slots a worker, in this order. Here split 0's, of worker `first_worker`; the
// others' workers follow it.
__device__ __forceinline__ u32 slot_of_first(u32 first_worker) { return 2 * first_worker + 1; }

// How many slots after split 0's that of `split` comes. Splits of a fixed size are numbered through the batch.
template <bool FIXED_SPLITS>
__device__ __forceinline__ u32 slots_after_first(u32 split) {
    return FIXED_SPLITS ? split : 2 * split - (split != 0);
}

}  // namespace snapmla
