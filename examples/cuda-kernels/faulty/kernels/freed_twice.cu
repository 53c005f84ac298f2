// out = a + b through memory of the device's heap, given back twice.
extern "C" __global__ void freed_twice(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    volatile float *one = static_cast<volatile float *>(malloc(sizeof(float)));
    *one = a[i] + b[i];
    out[i] = *one;
    free(const_cast<float *>(one));
    free(const_cast<float *>(one));
}
