// K-append: half a warp a token. Slot, content and rope are requested together, so that one trip to memory is all the
// latency there is.
#include "args.cuh"
#include "half_row.cuh"
#include "layout.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "row.cuh"

namespace snapmla {

template <class T>
__device__ __forceinline__ void k_append(const KAppendArgs& args) {
    grid_dependency_wait();
    grid_launch_dependents();
    const HalfWarp place(args.num_tokens);
    if (place.past_warp()) return;

    const i64 token = place.row();
    const i64 slot = load_i64(args.slots + token);
    HalfRow<T> raw;
    raw.load(args.content + token * args.content_stride, args.rope + token * args.rope_stride, args.vector, place.lane);
    const QuantisedHalfRow<T> row = quantise(raw);

    // A negative slot means skip; one past the cache must not be written either.
    const CacheArgs& cache = args.cache;
    if (place.past() || slot < 0 || slot >= cache.num_slots) return;
    const RecordPlace at = place_of(cache, slot);
#pragma unroll
    for (u32 i = 0; i < HalfRow<T>::VECTORS; i++) {
        store_words(at.page + content_offset(cache.page_size, at.row, HalfRow<T>::dim(i, place.lane)), row.content[i]);
    }
#pragma unroll
    for (u32 i = 0; i < HalfRow<T>::PAIRS; i++) {
        store_u32(at.page + rope_offset(cache.page_size, at.row, 2 * HalfRow<T>::rope_dim(i, place.lane)), row.rope[i]);
    }
    if (place.lane == 0) store_f32(reinterpret_cast<float*>(at.page + scale_offset(cache.page_size, at.row)), row.scale);
}

}  // namespace snapmla

#define SNAPMLA_KERNEL(name, type)                                                                         \
    extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)                                    \
        name(const __grid_constant__ snapmla::KAppendArgs args) {                                         \
        snapmla::k_append<snapmla::type>(args);                                                           \
    }

SNAPMLA_KERNEL(snapmla_k_append_bf16, Bf16)
SNAPMLA_KERNEL(snapmla_k_append_f16, F16)
SNAPMLA_KERNEL(snapmla_k_append_f32, F32)
