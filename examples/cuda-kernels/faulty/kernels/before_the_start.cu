// out = a + b, with a look at the element before.
extern "C" __global__ void before_the_start(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float before = a[i - 1];
    out[i] = before == 12345.0f ? 0.0f : a[i] + b[i];
}
