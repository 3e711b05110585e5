// Fetch-dequant: a warp writes up to two output rows, half of its lanes looking up each row's record. Each number is widened,
// multiplied by the record's scale and rounded once.
#include "args.cuh"
#include "element.cuh"
#include "layout.cuh"
#include "ptx/grid.cuh"
#include "ptx/memory.cuh"
#include "ptx/shuffle.cuh"
#include "row.cuh"
#include "sequence.cuh"

namespace snapmla {

// No such token: every row that the caller asked for is written, and where its block table or `starts` points outside
// the cache with NaN, which shows, where zeros would pass for a token.
constexpr i64 NOWHERE = -1;
// Most rows a warp, as in src/cuda/fetch_dequant.rs.
constexpr u32 MAX_ROWS = WARP / PROBES;
// Not asked for: the row stays as it is.
constexpr i64 UNWRITTEN = -2;

__device__ __forceinline__ i64 slot_of_row(const FetchArgs& args, i64 row, u32 lane) {
    const CacheArgs& cache = args.cache;
    if (args.slots != nullptr) {
        const i64 slot = load_i64_relaxed(args.slots + row);
        return slot >= 0 && slot < cache.num_slots ? slot : UNWRITTEN;
    }
    if (args.batch == 0) return UNWRITTEN;
    const i32 begin = load_i32(args.cu_tokens);
    const i32 end = load_i32(args.cu_tokens + args.batch);
    const u32 sequence = sequence_of(args.cu_tokens, args.batch, row, lane);
    if (row < begin || row >= end) return UNWRITTEN;
    const i64 start = args.starts != nullptr ? load_i32(args.starts + sequence) : 0;
    const i64 token = start + row - load_i32(args.cu_tokens + sequence);
    if (token < 0) return NOWHERE;
    const u64 column = divide(token, cache.page_divisor);
    if (column >= args.max_pages) return NOWHERE;
    const u8* table_row = reinterpret_cast<const u8*>(args.block_table) + i64(sequence) * args.block_table_stride;
    const i32 page = load_i32(reinterpret_cast<const i32*>(table_row) + column);
    if (page < 0 || u32(page) >= cache.num_pages) return NOWHERE;
    return i64(page) * cache.page_size + (token - i64(column) * cache.page_size);
}

// A lane's share of a record, in the order of RawRow: a vector of output covers VALUES dims.
template <class T>
struct Record {
    static constexpr u32 VECTORS = CONTENT_DIM / (WARP * T::VALUES);
    static constexpr u32 WORDS = T::VALUES / 4;

    u32 content[VECTORS][WORDS];
    u32 rope;
    float scale;

    static __device__ __forceinline__ u32 dim(u32 vector, u32 lane) { return (WARP * vector + lane) * T::VALUES; }

    __device__ __forceinline__ void load(const FetchArgs& args, i64 slot, u32 lane) {
        const CacheArgs& cache = args.cache;
        const RecordPlace at = place_of(cache, slot);
        if (args.content != nullptr) {
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) {
                load_words(at.page + content_offset(cache.page_size, at.row, dim(i, lane)), content[i]);
            }
        }
        if (args.rope != nullptr) rope = load_u32(at.page + rope_offset(cache.page_size, at.row, 4 * lane));
        scale = load_f32(reinterpret_cast<const float*>(at.page + scale_offset(cache.page_size, at.row)));
    }

    __device__ __forceinline__ void fill_nan() {
#pragma unroll
        for (u32 i = 0; i < VECTORS; i++) {
#pragma unroll
            for (u32 j = 0; j < WORDS; j++) content[i][j] = 0x7f7f7f7f;
        }
        rope = 0x7fff7fff;
        scale = __uint_as_float(0x7fffffff);
    }

private:
    static __device__ __forceinline__ void load_words(const u8* p, u32 (&words)[1]) { words[0] = load_u32(p); }
    static __device__ __forceinline__ void load_words(const u8* p, u32 (&words)[2]) {
        const U32x2 v = load_u32x2(p);
        words[0] = v.x;
        words[1] = v.y;
    }
};

template <class T>
__device__ __forceinline__ typename T::Vector dequantise(const u32 (&words)[T::VALUES / 4], float scale) {
    float x[T::VALUES];
#pragma unroll
    for (u32 j = 0; j < T::VALUES / 4; j++) {
        const u32 low = f16x2_from_e4m3x2(u16(words[j]));
        const u32 high = f16x2_from_e4m3x2(u16(words[j] >> 16));
        x[4 * j] = __fmul_rn(F16::low(low), scale);
        x[4 * j + 1] = __fmul_rn(F16::high(low), scale);
        x[4 * j + 2] = __fmul_rn(F16::low(high), scale);
        x[4 * j + 3] = __fmul_rn(F16::high(high), scale);
    }
    return T::pack(x);
}

template <class T>
__device__ __forceinline__ void write_row(const FetchArgs& args, i64 row, const Record<T>& record, u32 lane) {
    if (args.content != nullptr) {
        u8* content = args.content + row * args.content_stride;
#pragma unroll
        for (u32 i = 0; i < Record<T>::VECTORS; i++) {
            const typename T::Vector v = dequantise<T>(record.content[i], record.scale);
            u8* at = content + Record<T>::dim(i, lane) * T::BYTES;
            if (args.vector) {
                store_u32x4(at, v);
            } else {
                T::store_elements(at, v);
            }
        }
    }
    if (args.rope != nullptr) {
        u8* at = args.rope + row * args.rope_stride + 2 * T::BYTES * lane;
        const typename T::Pair pair = T::pack(__fmul_rn(Bf16::low(record.rope), record.scale),
                                              __fmul_rn(Bf16::high(record.rope), record.scale));
        if (args.vector) {
            T::store_pair(at, pair);
        } else {
            T::store_pair_elements(at, pair);
        }
    }
}

// The lines of the record that row `row` of the output will come from, as far as its slot does not change.
__device__ __forceinline__ void prefetch_record(const FetchArgs& args, i64 row, u32 lane) {
    const CacheArgs& cache = args.cache;
    const i64 slot = load_i64_relaxed(args.slots + row);
    if (slot < 0 || slot >= cache.num_slots) return;
    const RecordPlace at = place_of(cache, slot);
    const u32 part = lane % PROBES;
    if (part < 5) prefetch_l2(at.page + (part * cache.page_size + at.row) * ROW_BYTES);
    if (part == 5) prefetch_l2(at.page + scale_offset(cache.page_size, at.row));
}

template <class T>
__device__ __forceinline__ void fetch_dequant(const FetchArgs& args) {
    const u32 lane = lane_index();
    const i64 first = row_index() * args.rows_per_warp;
    const i64 left = args.num_tokens - first;
    const u32 count = left < args.rows_per_warp ? u32(left) : args.rows_per_warp;
    const u32 group = lane / PROBES;
    if (args.slots != nullptr && group < left && group < count) prefetch_record(args, first + group, lane);
    grid_dependency_wait();
    grid_launch_dependents();
    if (left <= 0) return;

    const i64 slot_of_group = slot_of_row(args, first + min(group, count - 1), lane);
    Record<T> records[MAX_ROWS];
    u32 written = 0;
#pragma unroll
    for (u32 i = 0; i < MAX_ROWS; i++) {
        const i64 slot = warp_shuffle_i64(slot_of_group, i * PROBES);
        if (i >= count || slot == UNWRITTEN) continue;
        written |= 1u << i;
        if (slot == NOWHERE) {
            records[i].fill_nan();
        } else {
            records[i].load(args, slot, lane);
        }
    }
#pragma unroll
    for (u32 i = 0; i < MAX_ROWS; i++) {
        if (written >> i & 1) write_row(args, first + i, records[i], lane);
    }
}

}  // namespace snapmla

#define SNAPMLA_KERNEL(name, type)                                                               \
    extern "C" __global__ void __launch_bounds__(snapmla::ROW_THREADS)                           \
        name(const __grid_constant__ snapmla::FetchArgs args) {                                  \
        snapmla::fetch_dequant<snapmla::type>(args);                                             \
    }

SNAPMLA_KERNEL(snapmla_fetch_dequant_bf16, Bf16)
SNAPMLA_KERNEL(snapmla_fetch_dequant_f16, F16)
SNAPMLA_KERNEL(snapmla_fetch_dequant_f32, F32)
