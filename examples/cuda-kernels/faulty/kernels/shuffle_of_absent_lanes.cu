// Sums of rows by one warp. The lanes beyond the row take no part in the shuffles that read them.
extern "C" __global__ void shuffle_of_absent_lanes(const float *x, float *out, int h) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < h; i += 32) sum += x[blockIdx.x * h + i];
    if (threadIdx.x < h) {
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(__activemask(), sum, step);
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
