// The decode kernels' planner, run on the host for one block at a time.
#include "device.h"

#include "decode/plan.cuh"

namespace {

using namespace snapmla;

// A segment as the tests see it. Mirrored by plans.rs.
struct Planned {
    u32 sequence, first_tile, tiles, length, q_first, slot, split, splits;
};

struct Job {
    const DecodeArgs* args;
    Planned* segments;
    Split* merges;
    u32 capacity;       // of both
    u32 num_segments, num_merges;
    u32 shared_sequences;
};

template <class Shared>
struct Planner {
    static inline Shared smem;

    static void plan(const void* with) { make_plan(*static_cast<const Job*>(with)->args, smem); }

    // What a score warp does before each segment after the first.
    static void extend(const void* with) {
        const Job& job = *static_cast<const Job*>(with);
        extend_segments(*job.args, smem, job.num_segments - 1);
    }

    static void list_merges(const void* with) {
        Job& job = *static_cast<Job*>(const_cast<void*>(with));
        if constexpr (Shared::FIXED_SPLITS) {
            AxisPlace place{smem.plan_sequence, smem.plan_position};
            for (u32 from = 0; from < smem.plan_share; from += FIXED_MERGES) {
                const u32 found = list_fixed_merges(*job.args, smem, from, place);
                __syncwarp();
                for (u32 i = 0; lane_of() == 0 && i < found; ++i) {
                    if (smem.fixed_merges[i].splits == 1) continue;
                    if (job.num_merges == job.capacity) fault("more merges than the test has room for");
                    job.merges[job.num_merges++] = smem.fixed_merges[i];
                }
                __syncwarp();
            }
        }
    }

    static void run(Job& job) {
        static Warp warp;
        // The ring holds what a block before this one left, as shared memory does.
        for (u32 i = THREADS / WARP; i-- > 0;) warp.run(i, plan, &job);
        for (;; ++job.num_segments) {
            if (smem.segments[job.num_segments % SEGMENT_RING].tiles == 0) break;
            if (job.num_segments > 0) warp.run(0, extend, &job);
            if (job.num_segments == job.capacity) fault("more segments than the test has room for");
            const Segment& s = smem.segments[job.num_segments % SEGMENT_RING];
            job.segments[job.num_segments] = {s.sequence, s.first_tile, s.tiles, s.length, s.q_first,
                                              s.first_slot + slots_after_first<Shared::FIXED_SPLITS>(s.split), s.split, s.splits};
        }
        warp.run(0, list_merges, &job);
        job.shared_sequences = smem.shared_sequences;
    }
};

template <template <int> class Shared>
void run(u32 rows, Job& job) {
    switch (rows) {
    case 16: return Planner<Shared<16>>::run(job);
    case 32: return Planner<Shared<32>>::run(job);
    case 64: return Planner<Shared<64>>::run(job);
    default: fault("no such kernel");
    }
}

template <int ROWS>
using Balanced = SharedMemory<ROWS>;

}  // namespace

// The plan of block `block` of a launch of kernel `name` with `args`: its segments, its merges where they are listed by the
// plan, and whether it will wait for others. Returns the number of segments.
extern "C" uint32_t plan(const char* name, const void* args, uint32_t block, void* segments, void* merges, uint32_t capacity,
                         uint32_t* num_merges, uint32_t* shared_sequences) {
    Job job{static_cast<const DecodeArgs*>(args), static_cast<Planned*>(segments), static_cast<Split*>(merges), capacity, 0, 0, 0};
    blockIdx = {block, 0, 0};
    const u32 rows = std::atoi(std::strrchr(name, '_') + 1);
    if (std::strstr(name, "batch_invariant") != nullptr) {
        run<FixedSplitsMemory>(rows, job);
    } else {
        run<Balanced>(rows, job);
    }
    *num_merges = job.num_merges, *shared_sequences = job.shared_sequences;
    return job.num_segments;
}
