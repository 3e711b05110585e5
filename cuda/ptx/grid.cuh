// Programmatic dependent launch.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions-griddepcontrol
#pragma once

namespace snapmla {

// Waits until every grid ahead in the stream has ended and its writes are visible. Every thread calls it, first thing:
// a grid that could end earlier would let the one behind it start too early. No effect in an ordinary launch.
__device__ __forceinline__ void grid_dependency_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Lets the grid behind start as soon as every block of this one runs; its own wait still covers all of this grid.
__device__ __forceinline__ void grid_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace snapmla
