// Sums of rows. Half of the threads wait at the barrier of the loop, the others at the one behind it.
extern "C" __global__ void divergent_barrier(const float *x, float *out, int h) {
    __shared__ float sums[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < h; i += 128) sum += x[blockIdx.x * h + i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > threadIdx.x; half /= 2) {
        sums[threadIdx.x] += sums[threadIdx.x + half];
        asm volatile("bar.sync 1, 128;");
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
