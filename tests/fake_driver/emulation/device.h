// What CUDA C++ has and C++ has not, for kernels whose warps share nothing: a block's warps run one after the other, a
// warp's 32 lanes as coroutines that take turns at votes and shuffles. Divisions and roundings are the host's own, which
// IEEE 754 makes the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#define __device__
#define __forceinline__ inline
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)

struct Index {
    uint32_t x, y, z;
};
inline Index threadIdx, blockIdx;
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};

inline float __uint_as_float(uint32_t x) {
    float v;
    std::memcpy(&v, &x, 4);
    return v;
}
inline uint32_t __float_as_uint(float x) {
    uint32_t v;
    std::memcpy(&v, &x, 4);
    return v;
}
// The GPU's arithmetic makes one NaN only.
inline float canonical(float x) { return x == x ? x : __uint_as_float(0x7fffffff); }
inline float __fmul_rn(float a, float b) { return canonical(a * b); }
inline float __fdiv_rn(float a, float b) { return canonical(a / b); }
inline float __frcp_rn(float a) { return canonical(1.0f / a); }
inline float __fmaf_rn(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return uint64_t((unsigned __int128)a * b >> 64); }
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
    const uint64_t bytes = uint64_t(y) << 32 | x;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= uint32_t(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return v;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
template <class T>
T max(T a, T b) {
    return a > b ? a : b;
}
template <class T>
T min(T a, T b) {
    return a < b ? a : b;
}
inline int __ffs(uint32_t x) { return __builtin_ffs(int(x)); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint64_t(a) * b >> 32; }
inline float __uint2float_rn(uint32_t x) { return float(x); }
inline uint32_t __float2uint_rn(float x) { return uint32_t(std::nearbyint(x)); }
inline uint32_t __float2uint_ru(float x) { return uint32_t(std::ceil(x)); }
// The GPU's is off by up to two units in the last place.
inline float __fdividef(float a, float b) { return a / b; }

[[noreturn]] inline void fault(const char* what) {
    std::fprintf(stderr, "emulated kernel: %s in block %u, thread %u\n", what, blockIdx.x, threadIdx.x);
    std::abort();
}

enum class Collective { MAX_U32, ADD_U32, BALLOT, SHUFFLE, SHUFFLE_UP, SHUFFLE_XOR };

class Warp {
    static constexpr int LANES = 32;
    static constexpr int STACK = 64 * 1024;

    struct Lane {
        ucontext_t context;
        bool done;
        Collective what;
        uint32_t value, operand, result;
    };
    Lane lanes[LANES];
    ucontext_t scheduler;
    int running = 0;
    const void* args;
    void (*kernel)(const void*);
    static inline char stacks[LANES][STACK];

public:
    static inline Warp* current = nullptr;

    // Runs the lanes of warp `warp` to their end.
    void run(uint32_t warp, void (*kernel_to_run)(const void*), const void* with) {
        kernel = kernel_to_run, args = with, current = this;
        for (int i = 0; i < LANES; i++) {
            Lane& lane = lanes[i];
            lane.done = false;
            getcontext(&lane.context);
            lane.context.uc_stack.ss_sp = stacks[i];
            lane.context.uc_stack.ss_size = STACK;
            lane.context.uc_link = &scheduler;
            makecontext(&lane.context, enter, 0);
        }
        for (;;) {
            int done = 0;
            for (running = 0; running < LANES; running++) {
                if (!lanes[running].done) {
                    threadIdx.x = warp * LANES + running;
                    swapcontext(&scheduler, &lanes[running].context);
                }
                done += lanes[running].done;
            }
            if (done == LANES) return;
            if (done != 0) fault("a lane has left while others wait for it");
            resolve();
        }
    }

    uint32_t collective(Collective what, uint32_t value, uint32_t operand) {
        Lane& lane = lanes[running];
        lane.what = what, lane.value = value, lane.operand = operand;
        swapcontext(&lane.context, &scheduler);
        return lane.result;
    }

private:
    static void enter() {
        current->kernel(current->args);
        current->lanes[current->running].done = true;
    }

    void resolve() {
        uint32_t largest = 0, sum = 0, votes = 0;
        for (int i = 0; i < LANES; i++) {
            if (lanes[i].what != lanes[0].what) fault("lanes wait for different things");
            largest = lanes[i].value > largest ? lanes[i].value : largest;
            sum += lanes[i].value;
            votes |= uint32_t(lanes[i].value != 0) << i;
        }
        for (int i = 0; i < LANES; i++) {
            Lane& lane = lanes[i];
            switch (lane.what) {
            case Collective::MAX_U32: lane.result = largest; break;
            case Collective::ADD_U32: lane.result = sum; break;
            case Collective::BALLOT: lane.result = votes; break;
            case Collective::SHUFFLE: lane.result = lanes[lane.operand % LANES].value; break;
            case Collective::SHUFFLE_UP: lane.result = lanes[i < int(lane.operand) ? i : i - lane.operand].value; break;
            case Collective::SHUFFLE_XOR: lane.result = lanes[(i ^ lane.operand) % LANES].value; break;
            }
        }
    }
};

inline uint32_t __ballot_sync(uint32_t, bool vote) { return Warp::current->collective(Collective::BALLOT, vote, 0); }
inline uint32_t __reduce_add_sync(uint32_t, uint32_t x) { return Warp::current->collective(Collective::ADD_U32, x, 0); }
inline uint32_t __reduce_max_sync(uint32_t, uint32_t x) { return Warp::current->collective(Collective::MAX_U32, x, 0); }
inline uint32_t __shfl_sync(uint32_t, uint32_t x, uint32_t lane) { return Warp::current->collective(Collective::SHUFFLE, x, lane); }
inline uint32_t __shfl_up_sync(uint32_t, uint32_t x, uint32_t by) { return Warp::current->collective(Collective::SHUFFLE_UP, x, by); }
inline void __syncwarp() { Warp::current->collective(Collective::BALLOT, 0, 0); }
// Warps run one after the other: whoever needs what others wrote must run last.
inline void __syncthreads() {}
