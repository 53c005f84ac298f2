// GELU of half-precision numbers, eight a thread; in single precision between the load and the store.

#include <cuda_fp16.h>

__device__ float gelu_of(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__device__ unsigned gelu_of(unsigned pair) {
    const float2 v = __half22float2(*reinterpret_cast<const __half2 *>(&pair));
    const __half2 answer = __floats2half2_rn(gelu_of(v.x), gelu_of(v.y));
    return *reinterpret_cast<const unsigned *>(&answer);
}

extern "C" __global__ void __launch_bounds__(128) gelu(const __half *__restrict__ x, __half *__restrict__ out, int n) {
    const int start = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (start + 8 <= n) {
        uint4 v = *reinterpret_cast<const uint4 *>(x + start);
        v.x = gelu_of(v.x);
        v.y = gelu_of(v.y);
        v.z = gelu_of(v.z);
        v.w = gelu_of(v.w);
        *reinterpret_cast<uint4 *>(out + start) = v;
    } else {
        for (int i = start; i < n; ++i) out[i] = __float2half_rn(gelu_of(__half2float(x[i])));
    }
}
