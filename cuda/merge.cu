// Merge: a warp a (token, head) row combines its partial outputs by their log-sum-exps.
#include "args.cuh"
#include "element.cuh"
#include "layout.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "ptx/warp.cuh"
#include "row.cuh"

namespace snapmla {

constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float infinity() {
    return __uint_as_float(0x7f800000);
}

// The larger of all lanes' values; unlike fmaxf it keeps a NaN.
__device__ __forceinline__ float warp_larger(float x) {
#pragma unroll
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) {
        const float y = warp_shuffle_xor(x, mask);
        x = y > x || y != y ? y : x;
    }
    return x;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) x += warp_shuffle_xor(x, mask);
    return x;
}

__device__ __forceinline__ float exponential(float x) {
    return exp2f(x * LOG2E);
}

__device__ __forceinline__ void store_pairs(u8* p, const u32 (&pairs)[2]) {
    store_u32x2(p, {pairs[0], pairs[1]});
}
__device__ __forceinline__ void store_pairs(u8* p, const u32 (&pairs)[4]) {
    store_u32x4(p, {pairs[0], pairs[1], pairs[2], pairs[3]});
}

// N neighbours of the output row, from dim `dim` on.
template <u32 N>
__device__ __forceinline__ void store_values(u8* row, u32 dim, const float (&x)[N], Dtype dtype, bool vector) {
    if (dtype == Dtype::F32) {
#pragma unroll
        for (u32 i = 0; i < N; i += F32::VALUES) {
            const F32::Vector quad = F32::pack({x[i], x[i + 1], x[i + 2], x[i + 3]});
            u8* at = row + (dim + i) * F32::BYTES;
            if (vector) {
                store_u32x4(at, quad);
            } else {
                F32::store_elements(at, quad);
            }
        }
        return;
    }
    u8* at = row + dim * Bf16::BYTES;
    u32 pairs[N / 2];
#pragma unroll
    for (u32 i = 0; i < N / 2; i++) {
        pairs[i] = dtype == Dtype::BF16 ? Bf16::pack(x[2 * i], x[2 * i + 1]) : F16::pack(x[2 * i], x[2 * i + 1]);
    }
    if (vector) {
        store_pairs(at, pairs);
    } else {
#pragma unroll
        for (u32 i = 0; i < N / 2; i++) Bf16::store_pair_elements(at + 4 * i, pairs[i]);
    }
}

// A lane's share of some parts of one row: vector i covers dims (32 i + lane) * VALUES onwards.
template <class T>
struct PartRows {
    static constexpr u32 VECTORS = CONTENT_DIM / (WARP * T::VALUES);
    // Loads in flight together: 4 KB a warp.
    static constexpr u32 PARTS = 8 / T::BYTES;
    static_assert(WARP % PARTS == 0, "a warp's weights serve whole steps");

    typename T::Vector raw[PARTS][VECTORS];

    static __device__ __forceinline__ u32 dim(u32 vector, u32 lane) { return (WARP * vector + lane) * T::VALUES; }

    // The first PARTS of `count` parts from `first` on.
    __device__ __forceinline__ void load(const u8* first, i64 stride, u32 count, bool vector, u32 lane) {
        if (vector) {
            load_by<true>(first, stride, count, lane);
        } else {
            load_by<false>(first, stride, count, lane);
        }
    }

private:
    template <bool VECTOR>
    __device__ __forceinline__ void load_by(const u8* first, i64 stride, u32 count, u32 lane) {
#pragma unroll
        for (u32 p = 0; p < PARTS; p++) {
            if (p >= count) break;
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) {
                const u8* at = first + p * stride + dim(i, lane) * T::BYTES;
                raw[p][i] = VECTOR ? load_u32x4(at) : T::load_elements(at);
            }
        }
    }
};

template <class T>
__device__ __forceinline__ void merge(const MergeArgs& args) {
    using Rows = PartRows<T>;
    constexpr u32 VECTORS = Rows::VECTORS;
    grid_dependency_wait();
    grid_launch_dependents();
    const u32 lane = lane_index();
    const i64 index = row_index();
    if (index >= args.num_rows) return;

    const i64 token = divide(index, args.heads_divisor);
    const i64 head = index - token * args.num_heads;
    const u8* parts = args.parts + token * args.parts_token_stride + head * args.parts_head_stride;
    const u8* parts_lse = args.parts_lse + token * args.parts_lse_token_stride + head * args.parts_lse_head_stride;

    Rows rows;
    float reference = -infinity();
    float total = 0.0f;
    float sum[VECTORS][T::VALUES] = {};
    // A lane weighs one part at a time: nearly always the only round.
#pragma unroll 1
    for (u32 round = 0; round < args.num_parts; round += WARP) {
        // Asked for before their weights are known, so that few parts cost one trip to memory.
        rows.load(parts + round * args.parts_part_stride, args.parts_part_stride, args.num_parts - round, args.vector,
                  lane);
        float lse = -infinity();
        if (round + lane < args.num_parts) {
            lse = load_f32(reinterpret_cast<const float*>(parts_lse + (round + lane) * args.parts_lse_part_stride));
        }
        // Some kernels mark with +inf a part that attended to nothing.
        if (lse == infinity()) lse = -infinity();
        float largest = warp_larger(lse);
        if (largest == -infinity()) continue;
        if (round > 0) {
            largest = largest < reference ? reference : largest;
            const float shrink = exponential(reference - largest);
            total *= shrink;
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) {
#pragma unroll
                for (u32 j = 0; j < T::VALUES; j++) sum[i][j] *= shrink;
            }
        }
        reference = largest;
        const float weight = exponential(lse - reference);
        total += warp_sum(weight);
#pragma unroll 1
        for (u32 step = 0; step < WARP && round + step < args.num_parts; step += Rows::PARTS) {
            if (step > 0) {
                const u32 first = round + step;
                rows.load(parts + first * args.parts_part_stride, args.parts_part_stride, args.num_parts - first,
                          args.vector, lane);
            }
#pragma unroll
            for (u32 p = 0; p < Rows::PARTS; p++) {
                const float part_weight = warp_shuffle(weight, step + p);
                // Whatever an empty part's output holds must not matter. Lanes past the last part weigh 0, too.
                if (part_weight == 0.0f) continue;
#pragma unroll
                for (u32 i = 0; i < VECTORS; i++) {
                    float x[T::VALUES];
                    T::unpack(rows.raw[p][i], x);
#pragma unroll
                    for (u32 j = 0; j < T::VALUES; j++) sum[i][j] = __fmaf_rn(part_weight, x[j], sum[i][j]);
                }
            }
        }
    }

    const bool empty = reference == -infinity();
    const float scale = empty ? 0.0f : __frcp_rn(total);
    u8* out = args.out + token * args.out_token_stride + head * args.out_head_stride;
#pragma unroll
    for (u32 i = 0; i < VECTORS; i++) {
#pragma unroll
        for (u32 j = 0; j < T::VALUES; j++) sum[i][j] *= scale;
        store_values(out, Rows::dim(i, lane), sum[i], args.out_dtype, args.vector);
    }
    if (args.lse != nullptr && lane == 0) {
        u8* at = args.lse + token * args.lse_token_stride + head * args.lse_head_stride;
        store_f32(reinterpret_cast<float*>(at), empty ? -infinity() : reference + logf(total));
    }
}

}  // namespace snapmla

#define SNAPMLA_KERNEL(name, type)                                                               \
    extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)                           \
        name(const __grid_constant__ snapmla::MergeArgs args) {                                  \
        snapmla::merge<snapmla::type>(args);                                                     \
    }

SNAPMLA_KERNEL(snapmla_merge_bf16, Bf16)
SNAPMLA_KERNEL(snapmla_merge_f16, F16)
SNAPMLA_KERNEL(snapmla_merge_f32, F32)
