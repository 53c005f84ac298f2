// out = a + b. The launch forgets the length.
extern "C" __global__ void argument_missing(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
