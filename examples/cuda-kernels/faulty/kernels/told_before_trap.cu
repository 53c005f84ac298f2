#include <cstdio>

// out = a + b. Says what it was not made for, and gives up.
extern "C" __global__ void told_before_trap(const float *a, const float *b, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n % 2 != 0) {
        if (i == 0) printf("%d is odd\n", n);
        __trap();
    }
    if (i < n) out[i] = a[i] + b[i];
}
