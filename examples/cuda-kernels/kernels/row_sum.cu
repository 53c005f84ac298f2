// Sums of rows, a block a row, by a tree in shared memory.

constexpr int THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS)
row_sum(const float *__restrict__ x, float *__restrict__ out, int columns) {
    __shared__ float partial[THREADS];
    const float *row = x + static_cast<size_t>(blockIdx.x) * columns;
    float total = 0.0f;
    for (int i = threadIdx.x; i < columns; i += THREADS) total += row[i];
    partial[threadIdx.x] = total;
    __syncthreads();
#pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
