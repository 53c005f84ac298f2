// out = a + b. Gives up on what it was not made for.
extern "C" __global__ void trap(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n % 2 != 0) __trap();
    if (i < n) out[i] = a[i] + b[i];
}
