// Sums of rows. Threads without an element write no partial sum.
extern "C" __global__ void uninitialised_shared(const float *x, float *out, int h) {
    __shared__ float sums[128];
    for (int i = threadIdx.x; i < h; i += 128) {
        sums[threadIdx.x] = x[blockIdx.x * h + i] + (i < 128 ? 0.0f : sums[threadIdx.x]);
    }
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
