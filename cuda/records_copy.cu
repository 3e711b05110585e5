// Records copy: eight lanes a (record, layer). A lane moves the 16-byte chunk of its number of each of the record's five
// 128-byte rows, four of content and one of rope, and the first the scale; a chunk's place in its row depends on the row,
// so source and destination differ.
#include "args.cuh"
#include "layout.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "row.cuh"

namespace snapmla {

constexpr u32 RECORD_LANES = ROW_BYTES / CHUNK_BYTES;
constexpr u32 RECORD_ROWS = CONTENT_DIM / ROW_BYTES + 1;
// As in src/cuda/records_copy.rs.
constexpr u32 WARP_RECORDS = WARP / RECORD_LANES;

__device__ __forceinline__ void records_copy(const RecordsCopyArgs& args) {
    const CacheArgs& cache = args.cache;
    const u32 page_size = cache.page_size;
    const u32 lane = lane_index() % RECORD_LANES;
    const i64 record = row_index() * WARP_RECORDS + lane_index() / RECORD_LANES;
    const i64 layer = i64(blockIdx.y) * args.layer_stride;
    // The slots may be about to change: what they are now only says which lines to fetch.
    if (record < args.num_records) {
        const i64 slot = load_i64_relaxed(args.src_slots + record);
        prefetch_l2(args.dst_slots + record);
        if (slot >= 0 && slot < cache.num_slots) {
            const RecordPlace at = place_of(cache, slot);
            if (lane < RECORD_ROWS) prefetch_l2(at.page + layer + (lane * page_size + at.row) * ROW_BYTES);
            if (lane == RECORD_ROWS) prefetch_l2(at.page + layer + scale_offset(page_size, at.row));
        }
    }
    grid_dependency_wait();
    grid_launch_dependents();
    if (record >= args.num_records) return;

    const i64 src_slot = load_i64_relaxed(args.src_slots + record);
    const i64 dst_slot = load_i64(args.dst_slots + record);
    if (src_slot < 0 || src_slot >= cache.num_slots || dst_slot < 0 || dst_slot >= cache.num_slots) return;
    RecordPlace src = place_of(cache, src_slot);
    RecordPlace dst = place_of(cache, dst_slot);
    src.page += layer;
    dst.page += layer;

    const u32 byte = CHUNK_BYTES * lane;
    U32x4 chunks[RECORD_ROWS];
    u32 scale;
#pragma unroll
    for (u32 i = 0; i < RECORD_ROWS; i++) {
        chunks[i] = load_u32x4(src.page + i * page_size * ROW_BYTES + swizzled(src.row, byte));
    }
    if (lane == 0) scale = load_u32(src.page + scale_offset(page_size, src.row));
#pragma unroll
    for (u32 i = 0; i < RECORD_ROWS; i++) {
        store_u32x4(dst.page + i * page_size * ROW_BYTES + swizzled(dst.row, byte), chunks[i]);
    }
    if (lane == 0) store_u32(dst.page + scale_offset(page_size, dst.row), scale);
}

}  // namespace snapmla

extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)
    snapmla_records_copy(const __grid_constant__ snapmla::RecordsCopyArgs args) {
    snapmla::records_copy(args);
}
