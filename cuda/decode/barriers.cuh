// The named barriers that the decode kernel's warpgroups hand over by.
#pragma once

#include "decode/config.cuh"
#include "ptx/named_barrier.cuh"

namespace snapmla {

// Named barriers. 0 is __syncthreads.
enum Barrier : int {
    P_READY = 1,           // 1, 2: a score warpgroup has written P of its tile          (128 + 256 threads)
    P_FREE = 3,            // 3, 4: the value warpgroups have read it                    (128 + 256)
    STATS_READY = 5,       // references and sums of a finished segment are there        (256 + 256)
    STATS_FREE = 6,        // the value warpgroups have read them                        (256 + 256)
    REFERENCE_PASSED = 7,  // 7, 8: references as left by this score warpgroup's tile    (128 + 128)
    SCORE_GROUP = 9,       // 9, 10: one score warpgroup                                 (128)
    SCORE_BOTH = 11,       // both score warpgroups                                      (256)
    VALUE_BOTH = 12,       // both value warpgroups                                      (256)
};

// One thread.
__device__ __forceinline__ void init_named_barriers() {
    for (int group = 0; group < 2; ++group) {
        named_barrier_init(P_READY + group, WARPGROUP + VALUE_THREADS);
        named_barrier_init(P_FREE + group, WARPGROUP + VALUE_THREADS);
        named_barrier_init(REFERENCE_PASSED + group, SCORE_THREADS);
        named_barrier_init(SCORE_GROUP + group, WARPGROUP);
    }
    named_barrier_init(STATS_READY, SCORE_THREADS + VALUE_THREADS);
    named_barrier_init(STATS_FREE, SCORE_THREADS + VALUE_THREADS);
    named_barrier_init(SCORE_BOTH, SCORE_THREADS);
    named_barrier_init(VALUE_BOTH, VALUE_THREADS);
}

}  // namespace snapmla
