// Sums of rows, two rows a block through the same shared memory. Nothing keeps the second from overtaking the first.
extern "C" __global__ void reused_shared(const float *x, float *out, int h, int rows) {
    __shared__ float sums[128];
    for (int row = 2 * blockIdx.x; row < rows && row < 2 * blockIdx.x + 2; ++row) {
        float sum = 0.0f;
        for (int i = threadIdx.x; i < h; i += 128) sum += x[row * h + i];
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            float all = 0.0f;
            for (int i = 0; i < 128; ++i) all += sums[i];
            out[row] = all;
        }
    }
}
