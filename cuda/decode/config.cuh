// Sizes, roles and the shared-memory map of the decode kernel.
#pragma once

#include "layout.cuh"
#include "ptx/types.cuh"

namespace snapmla {

constexpr int TILE_TOKENS = 64;
constexpr int BLOCK_BYTES = TILE_TOKENS * ROW_BYTES;        // a column block of a tile
constexpr int KEY_BYTES = 5 * BLOCK_BYTES;                   // a tile's content and, as a fifth block, rope: 40 KB

// Four warpgroups: two score alternate tiles (QK and softmax), two take half of the value dims each (PV).
constexpr int THREADS = 512;
constexpr int WARPGROUP = 128;
constexpr int SCORE_THREADS = 256;
constexpr int VALUE_THREADS = 256;

// Multiprocessors of the largest GPU of compute capability 9.0; src/plan.rs makes no more blocks.
constexpr u32 MAX_WORKERS = 144;

// A row's fused probabilities are kept below 448, the largest E4M3 number, and a block's largest one in the top
// eight octaves: 448 / 256. They are relative to a reference that moves only when a block's largest one leaves this window.
constexpr float WINDOW_HIGH = 448.f;
constexpr float WINDOW_LOW = 1.75f;
// Where a new reference puts the largest one: 2^4, exact in E4M3, and the middle of the window, from which block maxima
// of ordinary logits (a standard deviation of 1 to 2 octaves) stray least. A move costs a pass over O.
constexpr float ANCHOR_OCTAVE = 4.f;
// A reference never sinks further below the highest one seen: O and the sum would overflow (infinities were seen
// with peaked logits over 131,072 tokens).
constexpr float MAX_DESCENT_OCTAVES = 40.f;
constexpr float NO_REFERENCE = -1e30f;
// Whether a row whose largest fused probability is this many octaves above its reference wants a new one, well before
// the window's ends, where it is looked at at all.
__device__ __forceinline__ bool strays(float octaves) { return octaves > 8.f || octaves < 1.f; }
// exp2 is not tried on logits that may be this far above the reference: at 128 it overflows.
constexpr float OVERFLOW_OCTAVES = 100.f;

// A run of tiles of one sequence for one worker.
struct alignas(8) Segment {
    u32 sequence;
    u32 first_tile;
    u32 tiles;         // 0 ends the list
    u32 length;        // tokens of the sequence
    u32 q_first;       // its first query token in a ragged batch
    u32 first_slot;    // of its splits' partials (see partials.cuh)
    u16 split;         // which of them this is
    u16 splits;        // how many there are; 1 means that this segment is all of the sequence
};

// A split whose partial waits to be merged with those of the sequence's others.
struct Split {
    u32 sequence;
    u32 first_slot;
    u16 split;
    u16 splits;
};

// Segments are planned ahead: a page id is looked up seven tiles before its tile is scored.
constexpr u32 SEGMENT_RING = 16;
// Page ids wait here for the value warpgroups, which refill the content stages as they empty them.
constexpr u32 PIECE_RING = 8;
constexpr u32 MAX_PIECES = 8;  // of a tile

// A tile as a page of 64 records has it, so that such a page is one copy.
struct alignas(1024) Stage {
    u8 keys[KEY_BYTES];
    float scale[TILE_TOKENS];
};

// For blocks of ROWS rows (16, 32 or 64).
template <int ROWS_>
struct alignas(1024) SharedMemory {
    static constexpr int ROWS = ROWS_;
    // Whether splits are cut by a sequence's own length alone (fixed_splits.cuh).
    static constexpr bool FIXED_SPLITS = false;
    static constexpr int STAGES = ROWS == 16 ? 5 : 4;
    static constexpr int QUERY_BLOCK_BYTES = ROWS * ROW_BYTES;
    static constexpr int P_BYTES = ROWS * TILE_TOKENS;

    u8 queries[5][QUERY_BLOCK_BYTES];   // content, and rope as a fifth block
    Stage stages[STAGES];
    u8 p[2][P_BYTES];                   // E4M3, rows of 64 bytes
    u64 full[STAGES];
    u64 merged;                         // a merge's partials have come
    u32 next_sequence;                  // where the planner goes on
    u32 next_position;
    u32 segments_made;
    u32 plan_share;                     // of the axis, a worker
    u32 grid_phase;                     // of the grid's barrier, before this block has arrived
    u32 shared_sequences;               // some sequence is shared by workers
    u32 num_merges;
    u32 finished;                       // number of the segment last scored, for the value warpgroups; at first -1
    u32 finished_tiles;                 // tiles up to its end
    u32 rescaled[2];                    // a byte a warp: some row of the tile moved its reference
    Split merges[2];                    // sequences that this worker shares with others
    union alignas(16) {
        float rescale[2][ROWS];         // factor on O that goes with the tile
        float sum[2][ROWS];             // at a segment's end: un-quantised probabilities, by score warpgroup
    };
    float reference[ROWS];              // log2 of what P is relative to
    float highest[ROWS];                // highest reference of the segment
    float q_factor[ROWS];               // scale_log2 * s_q
    // Of narrow tiles, by score warpgroup and warp: rows that have a number in the window; whether some number is above
    // it; and a number a row.
    alignas(16) u32 reached[2][4];
    alignas(16) u32 above[2][4];
    float by_warp[2][4][ROWS == 64 ? 1 : ROWS];
    Segment segments[SEGMENT_RING];
    u32 pieces[PIECE_RING][MAX_PIECES];

    // The planner's, a section of the batch a warp: before any tile there is no P.
    template <class Totals>
    __device__ __forceinline__ Totals* sections() {
        static_assert(THREADS / 32 * sizeof(Totals) <= sizeof(p), "P holds what the planner sums");
        return reinterpret_cast<Totals*>(p);
    }
};

// With splits of a fixed size a worker may have any number of them: they are merged so many at a time.
constexpr u32 FIXED_MERGES = 16;

template <int ROWS>
struct FixedSplitsMemory : SharedMemory<ROWS> {
    static constexpr bool FIXED_SPLITS = true;

    u32 plan_sequence;  // where the walk over this worker's splits starts
    u32 plan_position;
    Split fixed_merges[FIXED_MERGES];
};

static_assert(sizeof(FixedSplitsMemory<16>) <= MAX_SHARED && sizeof(FixedSplitsMemory<32>) <= MAX_SHARED &&
                  sizeof(FixedSplitsMemory<64>) <= MAX_SHARED,
              "a block's shared memory");

}  // namespace snapmla
