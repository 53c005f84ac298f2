// out = a + b, four elements at a time, from the second element on.
extern "C" __global__ void misaligned_vector(const float *a, const float *b, float *out, int n) {
    const int i = 1 + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i == 1) out[0] = a[0] + b[0];
    if (i + 4 <= n) {
        const float4 x = *reinterpret_cast<const float4 *>(a + i);
        const float4 y = *reinterpret_cast<const float4 *>(b + i);
        *reinterpret_cast<float4 *>(out + i) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
        return;
    }
    for (int j = i; j < n; ++j) out[j] = a[j] + b[j];
}
