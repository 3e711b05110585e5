// Decode with splits of a fixed size: a row's bits depend on its own sequence alone.
#include "decode/kernel.cuh"

#define SNAPMLA_DECODE(name, rows)                                          \
    extern "C" __global__ void __launch_bounds__(snapmla::THREADS, 1)       \
        name(const __grid_constant__ snapmla::DecodeArgs args) {            \
        snapmla::decode<snapmla::FixedSplitsMemory<rows>>(args);            \
    }

SNAPMLA_DECODE(snapmla_decode_batch_invariant_16, 16)
SNAPMLA_DECODE(snapmla_decode_batch_invariant_32, 32)
SNAPMLA_DECODE(snapmla_decode_batch_invariant_64, 64)
