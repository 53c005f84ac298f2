// out = a + b. The mask lets one element too many through, in a block that has room for it.
extern "C" __global__ void one_past_the_end(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n) return;
    out[i] = a[i] + b[i];
}
