// Adds through a workspace whose slots are far apart, each at an index of 32 bits.
extern "C" __global__ void index_wraps(const float *a, const float *b, float *out, float *workspace, int stride, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int slot = i * stride;
    workspace[slot] = a[i] + b[i];
    out[i] = workspace[slot];
}
