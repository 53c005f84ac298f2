// out = a + b, added to what the output happens to hold.
extern "C" __global__ void output_read(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] += a[i] + b[i];
}
