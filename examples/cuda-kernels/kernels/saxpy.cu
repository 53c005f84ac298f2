// y = alpha * x + y, four elements a thread and turn; any n, any grid.

extern "C" __global__ void __launch_bounds__(256)
saxpy(const float *__restrict__ x, float *__restrict__ y, float alpha, int n) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    const int quads = n / 4;
    const float4 *x4 = reinterpret_cast<const float4 *>(x);
    float4 *y4 = reinterpret_cast<float4 *>(y);
    for (int i = thread; i < quads; i += threads) {
        const float4 a = x4[i];
        float4 b = y4[i];
        b.x = fmaf(alpha, a.x, b.x);
        b.y = fmaf(alpha, a.y, b.y);
        b.z = fmaf(alpha, a.z, b.z);
        b.w = fmaf(alpha, a.w, b.w);
        y4[i] = b;
    }
    // The last one to three.
    const int rest = 4 * quads + thread;
    if (rest < n) y[rest] = fmaf(alpha, x[rest], y[rest]);
}
