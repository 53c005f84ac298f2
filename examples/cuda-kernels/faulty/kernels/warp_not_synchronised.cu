// Sums of rows. The last rounds rely on the threads of a warp walking in step.
extern "C" __global__ void warp_not_synchronised(const float *x, float *out, int h) {
    __shared__ float sums[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < h; i += 128) sum += x[blockIdx.x * h + i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 64) sums[threadIdx.x] += sums[threadIdx.x + 64];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
