// out = a + b, with a sum that is kept in an input.
extern "C" __global__ void input_overwritten(float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] += b[i];
    out[i] = a[i];
}
