// out = a + b and a bias that the launch passes as null.
extern "C" __global__ void null_pointer(const float *a, const float *b, const float *bias, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i] + bias[i];
}
