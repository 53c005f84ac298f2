// out = a + b. The sum calls itself until the stack is gone.
__device__ __noinline__ float sum(const float *a, const float *b, volatile int depth) {
    return depth < 0 ? a[0] + b[0] : sum(a, b, depth + 1) + 0.0f * depth;
}

extern "C" __global__ void recursion(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sum(a + i, b + i, 0);
}
