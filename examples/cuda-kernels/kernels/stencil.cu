// out[y][x] = sum of weight[i][j] * x[y + i - 1][x + j - 1], zero outside: images, one a z of the grid, in tiles of
// 32 by 8 with a border of one in shared memory.

constexpr int WIDTH = 32;
constexpr int HEIGHT = 8;

extern "C" __global__ void __launch_bounds__(WIDTH *HEIGHT)
stencil(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ out, int height, int width) {
    __shared__ float tile[HEIGHT + 2][WIDTH + 2];
    const size_t start = static_cast<size_t>(blockIdx.z) * height * width;
    const int top = blockIdx.y * HEIGHT - 1;
    const int left = blockIdx.x * WIDTH - 1;
    for (int i = threadIdx.y * WIDTH + threadIdx.x; i < (HEIGHT + 2) * (WIDTH + 2); i += WIDTH * HEIGHT) {
        const int y = i / (WIDTH + 2), across = i % (WIDTH + 2);
        const int row = top + y, column = left + across;
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        tile[y][across] = inside ? x[start + static_cast<size_t>(row) * width + column] : 0.0f;
    }
    __syncthreads();

    const int row = top + 1 + threadIdx.y;
    const int column = left + 1 + threadIdx.x;
    if (row >= height || column >= width) return;
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = 0; j < 3; ++j)
            total = fmaf(weight[3 * i + j], tile[threadIdx.y + i][threadIdx.x + j], total);
    out[start + static_cast<size_t>(row) * width + column] = total;
}
