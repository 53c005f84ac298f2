// c = a b in single precision: tiles of 64 by 64 in shared memory, 4 by 4 results a thread, any sizes.

constexpr int TILE = 64;   // Rows and columns of c a block.
constexpr int DEPTH = 16;  // Of a and b in shared memory at a time.
constexpr int EACH = 4;    // Rows and columns of c a thread.
constexpr int SIDE = TILE / EACH;
constexpr int THREADS = SIDE * SIDE;

extern "C" __global__ void __launch_bounds__(THREADS)
matmul_tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k) {
    // Transposed, for loads of four rows at once; four columns more, so that fewer of the stores meet in a bank.
    __shared__ float left[DEPTH][TILE + 4];
    __shared__ float right[DEPTH][TILE];
    const int row = blockIdx.y * TILE;
    const int column = blockIdx.x * TILE;
    const int thread = threadIdx.y * SIDE + threadIdx.x;
    float total[EACH][EACH] = {};

    for (int start = 0; start < k; start += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += THREADS) {
            const int y = i / DEPTH, x = i % DEPTH;
            const bool inside = row + y < m && start + x < k;
            left[x][y] = inside ? a[static_cast<size_t>(row + y) * k + start + x] : 0.0f;
        }
        for (int i = thread; i < TILE * DEPTH; i += THREADS) {
            const int y = i / TILE, x = i % TILE;
            const bool inside = start + y < k && column + x < n;
            right[y][x] = inside ? b[static_cast<size_t>(start + y) * n + column + x] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            const float4 l = *reinterpret_cast<const float4 *>(&left[depth][threadIdx.y * EACH]);
            const float4 r = *reinterpret_cast<const float4 *>(&right[depth][threadIdx.x * EACH]);
            const float ls[EACH] = {l.x, l.y, l.z, l.w};
            const float rs[EACH] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int y = 0; y < EACH; ++y)
#pragma unroll
                for (int x = 0; x < EACH; ++x) total[y][x] = fmaf(ls[y], rs[x], total[y][x]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int y = 0; y < EACH; ++y) {
        const int to = row + threadIdx.y * EACH + y;
#pragma unroll
        for (int x = 0; x < EACH; ++x) {
            const int at = column + threadIdx.x * EACH + x;
            if (to < m && at < n) c[static_cast<size_t>(to) * n + at] = total[y][x];
        }
    }
}
