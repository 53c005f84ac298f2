// Transposes matrices, one a z of the grid: tiles of 32 by 32 in shared memory, so that both sides are accessed along rows.

constexpr int TILE = 32;
constexpr int ROWS = 8;  // Threads along y: each moves four elements.

extern "C" __global__ void __launch_bounds__(TILE *ROWS)
transpose(const float *__restrict__ x, float *__restrict__ out, int rows, int columns) {
    // A column more, or the 32 threads of a column would meet in one bank.
    __shared__ float tile[TILE][TILE + 1];
    const size_t start = static_cast<size_t>(blockIdx.z) * rows * columns;
    int column = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (row + i < rows && column < columns)
            tile[threadIdx.y + i][threadIdx.x] = x[start + static_cast<size_t>(row + i) * columns + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (row + i < columns && column < rows)
            out[start + static_cast<size_t>(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
}
