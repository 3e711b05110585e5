// Q-quant: half a warp a (token, head) row.
#include "args.cuh"
#include "half_row.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "row.cuh"

namespace snapmla {

template <class T>
__device__ __forceinline__ void q_quant(const QQuantArgs& args) {
    grid_dependency_wait();
    grid_launch_dependents();
    const HalfWarp place(args.num_rows);
    if (place.past_warp()) return;

    const i64 index = place.row();
    const i64 token = divide(index, args.heads_divisor);
    const i64 head = index - token * args.num_heads;
    HalfRow<T> raw;
    raw.load(args.content + token * args.content_token_stride + head * args.content_head_stride,
             args.rope + token * args.rope_token_stride + head * args.rope_head_stride, args.vector, place.lane);
    const QuantisedHalfRow<T> row = quantise(raw);

    if (place.past()) return;
    u8* content = args.q_content + index * CONTENT_DIM;
#pragma unroll
    for (u32 i = 0; i < HalfRow<T>::VECTORS; i++) store_words(content + HalfRow<T>::dim(i, place.lane), row.content[i]);
    u8* rope = args.q_rope + index * ROW_BYTES;
#pragma unroll
    for (u32 i = 0; i < HalfRow<T>::PAIRS; i++) store_u32(rope + 2 * HalfRow<T>::rope_dim(i, place.lane), row.rope[i]);
    if (place.lane == 0) store_f32(args.q_scale + index, row.scale);
}

}  // namespace snapmla

#define SNAPMLA_KERNEL(name, type)                                                               \
    extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)                           \
        name(const __grid_constant__ snapmla::QQuantArgs args) {                                 \
        snapmla::q_quant<snapmla::type>(args);                                                   \
    }

SNAPMLA_KERNEL(snapmla_q_quant_bf16, Bf16)
SNAPMLA_KERNEL(snapmla_q_quant_f16, F16)
SNAPMLA_KERNEL(snapmla_q_quant_f32, F32)
