// Reductions over a warp and over a block.
#pragma once

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Sum {
    static constexpr float empty = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Of a NaN and a number the answer is NaN, as in the references: fmaxf would drop it.
struct Max {
    static constexpr float empty = -__builtin_huge_valf();
    __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

template <typename Operation>
__device__ float reduce_warp(float value, Operation operation) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        value = operation(value, __shfl_xor_sync(ALL_LANES, value, offset));
    return value;
}

// Every thread gets the answer. All threads of the block call it; the block is a whole number of warps, 32 at most.
template <typename Operation>
__device__ float reduce_block(float value, Operation operation) {
    __shared__ float partial[WARP];
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    value = reduce_warp(value, operation);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < blockDim.x / WARP ? partial[lane] : Operation::empty;
    value = reduce_warp(value, operation);
    // The next reduction writes `partial` again.
    __syncthreads();
    return value;
}
