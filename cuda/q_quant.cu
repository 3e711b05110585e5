// Q-quant: a warp a (token, head) row.
#include "args.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "quantise.cuh"
#include "row.cuh"

namespace snapmla {

template <class T>
__device__ __forceinline__ void q_quant(const QQuantArgs& args) {
    grid_dependency_wait();
    grid_launch_dependents();
    const u32 lane = lane_index();
    const i64 index = row_index();
    if (index >= args.num_rows) return;

    const i64 token = divide(index, args.heads_divisor);
    const i64 head = index - token * args.num_heads;
    RawRow<T> raw;
    raw.load(args.content + token * args.content_token_stride + head * args.content_head_stride,
             args.rope + token * args.rope_token_stride + head * args.rope_head_stride, args.vector, lane);
    const QuantisedRow<T> row = quantise(raw);

    u8* content = args.q_content + index * CONTENT_DIM;
#pragma unroll
    for (u32 i = 0; i < RawRow<T>::VECTORS; i++) store_words(content + RawRow<T>::dim(i, lane), row.content[i]);
    store_u32(args.q_rope + index * ROW_BYTES + 4 * lane, row.rope);
    if (lane == 0) store_f32(args.q_scale + index, row.scale);
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
