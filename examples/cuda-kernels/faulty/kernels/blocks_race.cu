// Sums of rows. Two blocks share a row and both write its sum.
extern "C" __global__ void blocks_race(const float *x, float *out, int h) {
    const int row = blockIdx.x / 2;
    float sum = 0.0f;
    for (int i = 0; i < h; ++i) sum += x[row * h + i];
    out[row] = blockIdx.x % 2 ? sum : -sum;
}
