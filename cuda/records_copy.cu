// Records copy: a warp a (record, layer). Each lane moves the 16-byte content chunk of its number, and the first nine
// also a chunk of rope or the scale; a chunk's place in its row depends on the row, so source and destination differ.
#include "args.cuh"
#include "layout.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "row.cuh"

namespace snapmla {

constexpr u32 ROPE_CHUNKS = ROW_BYTES / CHUNK_BYTES;

__device__ __forceinline__ void records_copy(const RecordsCopyArgs& args) {
    grid_dependency_wait();
    grid_launch_dependents();
    const u32 lane = lane_index();
    const i64 record = row_index();
    if (record >= args.num_records) return;

    const CacheArgs& cache = args.cache;
    const u32 page_size = cache.page_size;
    const i64 src_slot = load_i64(args.src_slots + record);
    const i64 dst_slot = load_i64(args.dst_slots + record);
    if (src_slot < 0 || src_slot >= cache.num_slots || dst_slot < 0 || dst_slot >= cache.num_slots) return;
    const i64 layer = i64(blockIdx.y) * args.layer_stride;
    RecordPlace src = place_of(cache, src_slot);
    RecordPlace dst = place_of(cache, dst_slot);
    src.page += layer;
    dst.page += layer;

    const u32 byte = CHUNK_BYTES * lane;
    const U32x4 content = load_u32x4(src.page + content_offset(page_size, src.row, byte));
    U32x4 rope;
    u32 scale;
    if (lane < ROPE_CHUNKS) rope = load_u32x4(src.page + rope_offset(page_size, src.row, byte));
    if (lane == ROPE_CHUNKS) scale = load_u32(src.page + scale_offset(page_size, src.row));
    store_u32x4(dst.page + content_offset(page_size, dst.row, byte), content);
    if (lane < ROPE_CHUNKS) store_u32x4(dst.page + rope_offset(page_size, dst.row, byte), rope);
    if (lane == ROPE_CHUNKS) store_u32(dst.page + scale_offset(page_size, dst.row), scale);
}

}  // namespace snapmla

extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)
    snapmla_records_copy(const __grid_constant__ snapmla::RecordsCopyArgs args) {
    snapmla::records_copy(args);
}
