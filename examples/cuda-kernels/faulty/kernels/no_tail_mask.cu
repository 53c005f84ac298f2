// out = a + b. Every thread takes an element, whether there is one or not.
extern "C" __global__ void no_tail_mask(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i];
}
