// The integer types of every kernel. No header is included anywhere below cuda/: NVRTC has none of the system's, and
// a kernel that nvcc and NVRTC see alike compiles in a second.
#pragma once

namespace snapmla {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "integer types are not as named");

// The registers of 8- and 16-byte loads and stores.
struct alignas(8) U32x2 {
    u32 x, y;
};
struct alignas(16) U32x4 {
    u32 x, y, z, w;
};

constexpr u32 WARP = 32;
constexpr u32 MAX_SHARED = 232448;  // bytes of shared memory: 227 KB is all that a block gets

}  // namespace snapmla
