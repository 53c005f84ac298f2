// Adds through a workspace whose slots are far apart, each at an index of 32 bits that stays inside when it wraps around.
extern "C" __global__ void index_wraps_inside(const float *a, const float *b, float *out, float *workspace,
                                              unsigned stride, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned slot = i * stride;
    workspace[slot] = a[i] + b[i];
    out[i] = workspace[slot];
}
