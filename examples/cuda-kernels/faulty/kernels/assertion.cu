#include <cassert>

// out = a + b, for vectors of even length, or so it says.
extern "C" __global__ void assertion(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(n % 2 == 0);
    if (i < n) out[i] = a[i] + b[i];
}
