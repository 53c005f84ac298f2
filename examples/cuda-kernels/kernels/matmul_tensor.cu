// c = a b of half-precision matrices on tensor cores: a warp a tile of 16 by 16, tiles staged and padded in shared memory.

#include <cuda_fp16.h>
#include <mma.h>

constexpr int TILE = 16;
constexpr int WARP = 32;

extern "C" __global__ void __launch_bounds__(WARP)
matmul_tensor(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c, int m, int n, int k) {
    using namespace nvcuda;
    __shared__ __align__(32) __half left[TILE * TILE];
    __shared__ __align__(32) __half right[TILE * TILE];
    __shared__ __align__(32) float sums[TILE * TILE];
    const int row = blockIdx.y * TILE;
    const int column = blockIdx.x * TILE;
    const __half zero = __float2half_rn(0.0f);

    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> total;
    wmma::fill_fragment(total, 0.0f);
    for (int start = 0; start < k; start += TILE) {
        for (int i = threadIdx.x; i < TILE * TILE; i += WARP) {
            const int y = i / TILE, x = i % TILE;
            left[i] = row + y < m && start + x < k ? a[static_cast<size_t>(row + y) * k + start + x] : zero;
            right[i] = start + y < k && column + x < n ? b[static_cast<size_t>(start + y) * n + column + x] : zero;
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major> l;
        wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::row_major> r;
        wmma::load_matrix_sync(l, left, TILE);
        wmma::load_matrix_sync(r, right, TILE);
        wmma::mma_sync(total, l, r, total);
        // The next turn overwrites the tiles.
        __syncwarp();
    }
    wmma::store_matrix_sync(sums, total, TILE, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < TILE * TILE; i += WARP) {
        const int y = row + i / TILE, x = column + i % TILE;
        if (y < m && x < n) c[static_cast<size_t>(y) * n + x] = __float2half_rn(sums[i]);
    }
}
