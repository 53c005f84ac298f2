// out = a + b. The launch rounds the number of blocks down.
extern "C" __global__ void tail_not_covered(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
