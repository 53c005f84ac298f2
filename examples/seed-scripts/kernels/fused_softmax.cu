// Softmax of rows, one block a row of at most 1024 columns.
extern "C" __global__ void fused_softmax(const float *x, float *out, int columns) {
    __shared__ float partial[32];
    const float *row = x + (long long)blockIdx.x * columns;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; ++warp) largest = fmaxf(largest, partial[warp]);
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += __expf(row[i] - largest);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[warp];
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[(long long)blockIdx.x * columns + i] = __expf(row[i] - largest) / sum;
}
