// Decode with balanced splits.
#include "decode/kernel.cuh"

#define SNAPMLA_DECODE(name, rows)                                          \
    extern "C" __global__ void __launch_bounds__(snapmla::THREADS, 1)       \
        name(const __grid_constant__ snapmla::DecodeArgs args) {            \
        snapmla::decode<snapmla::SharedMemory<rows>>(args);                 \
    }

SNAPMLA_DECODE(snapmla_decode_16, 16)
SNAPMLA_DECODE(snapmla_decode_32, 32)
SNAPMLA_DECODE(snapmla_decode_64, 64)
