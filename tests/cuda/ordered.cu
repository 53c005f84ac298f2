// Right kernels whose threads share memory in ways that a checker may take for a race: one warp alone, elements of a
// thread's own, locks, flags, counted barriers, pipelines, conditions that are tested twice.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

extern "C" __global__ void one_warp(const float* x, float* o) {
    __shared__ float s[256];
    for (int i = threadIdx.x; i < 256; i += 32) s[i] = x[i];
    __syncwarp();
    float t = 0;
    for (int i = 0; i < 8; i++) t += s[(threadIdx.x * 8 + i)];
    __syncwarp();
    s[threadIdx.x] = t;
    __syncwarp();
    o[threadIdx.x] = s[31 - threadIdx.x];
}

extern "C" __global__ void wide8x4(const float* x, float* o) {
    __shared__ float s[32];
    s[threadIdx.y * 8 + threadIdx.x] = x[threadIdx.x];
    float v = s[threadIdx.y * 8 + threadIdx.x];
    o[threadIdx.x] = v;
}

extern "C" __global__ void wide4x8(const float* x, float* o) {
    __shared__ float s[32];
    s[threadIdx.y * 4 + threadIdx.x] = x[threadIdx.x];
    float v = s[threadIdx.y * 4 + threadIdx.x];
    o[threadIdx.x] = v;
}

extern "C" __global__ void rows16(const float* x, float* o) {
    __shared__ float s[16][17];
    int t = threadIdx.y * 16 + threadIdx.x;
    s[threadIdx.y][threadIdx.x] = x[t];
    __syncthreads();
    float v = s[threadIdx.x][threadIdx.y];
    __syncthreads();
    s[threadIdx.y][threadIdx.x] = v * 2;
    o[t] = s[threadIdx.y][threadIdx.x];
}

extern "C" __global__ void warp_hist(const unsigned char* x, int* o, int n) {
    __shared__ int h[8][256];
    int w = threadIdx.x / 32, l = threadIdx.x % 32;
    for (int i = l; i < 256; i += 32) h[w][i] = 0;
    __syncwarp();
    for (int i = threadIdx.x; i < n; i += 256) atomicAdd(&h[w][x[i]], 1);
    __syncthreads();
    int t = 0;
    for (int k = 0; k < 8; k++) t += h[k][threadIdx.x];
    o[threadIdx.x] = t;
}

extern "C" __global__ void own_hist(const unsigned char* x, int* o, int n) {
    extern __shared__ int h[];
    for (int i = 0; i < 16; i++) h[i * blockDim.x + threadIdx.x] = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) h[(x[i] & 15) * blockDim.x + threadIdx.x]++;
    int t = 0;
    for (int i = 0; i < 16; i++) t += h[i * blockDim.x + threadIdx.x];
    o[threadIdx.x] = t;
}

extern "C" __global__ void own_hist_atomic(const unsigned char* x, int* o, int n) {
    __shared__ int h[16 * 128];
    for (int i = 0; i < 16; i++) h[i * 128 + threadIdx.x] = 0;
    for (int i = threadIdx.x; i < n; i += 128) atomicAdd(&h[(x[i] & 15) * 128 + threadIdx.x], 1);
    int t = 0;
    for (int i = 0; i < 16; i++) t += h[i * 128 + threadIdx.x];
    o[threadIdx.x] = t;
}

extern "C" __global__ void locked(const float* x, float* o) {
    __shared__ int lock;
    __shared__ float sum;
    if (threadIdx.x == 0) {
        lock = 0;
        sum = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1));
        __threadfence_block();
        sum = sum + x[threadIdx.x];
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    o[threadIdx.x] = sum;
}

extern "C" __global__ void last_block(const float* x, float* p, int* count, float* o, int n) {
    __shared__ float s[128];
    __shared__ bool last;
    float t = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) t += x[i];
    s[threadIdx.x] = t;
    __syncthreads();
    for (int k = 64; k; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        p[blockIdx.x] = s[0];
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        t = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += 128) t += p[i];
        s[threadIdx.x] = t;
        __syncthreads();
        for (int k = 64; k; k >>= 1) {
            if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
            __syncthreads();
        }
        if (threadIdx.x == 0) o[0] = s[0];
    }
}

extern "C" __global__ void dynamic_reduce(const float* x, float* o, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) o[blockIdx.x] = s[0];
}

extern "C" __global__ void hillis(const float* x, float* o, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, a = 0, b = 1;
    s[t] = t > 0 && t < n ? x[t - 1] : 0;
    __syncthreads();
    for (int k = 1; k < n; k *= 2) {
        a = 1 - a;
        b = 1 - a;
        if (t >= k)
            s[a * n + t] = s[b * n + t] + s[b * n + t - k];
        else
            s[a * n + t] = s[b * n + t];
        __syncthreads();
    }
    o[t] = s[a * n + t];
}

extern "C" __global__ void blelloch(const float* x, float* o, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, off = 1;
    s[2 * t] = x[2 * t];
    s[2 * t + 1] = x[2 * t + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            int a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1;
            s[b] += s[a];
        }
        off *= 2;
    }
    if (t == 0) s[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        off >>= 1;
        __syncthreads();
        if (t < d) {
            int a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1;
            float v = s[a];
            s[a] = s[b];
            s[b] += v;
        }
    }
    __syncthreads();
    o[2 * t] = s[2 * t];
    o[2 * t + 1] = s[2 * t + 1];
}

extern "C" __global__ void bitonic(int* x) {
    __shared__ int s[512];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 256] = x[t + 256];
    for (int k = 2; k <= 512; k <<= 1)
        for (int j = k >> 1; j > 0; j >>= 1) {
            __syncthreads();
            int i = 2 * j * (t / j) + t % j;
            bool up = (i & k) == 0;
            int a = s[i], b = s[i + j];
            if ((a > b) == up) {
                s[i] = b;
                s[i + j] = a;
            }
        }
    __syncthreads();
    x[t] = s[t];
    x[t + 256] = s[t + 256];
}

template <int N>
__device__ void pipeline(const float4* x, float* o, int n) {
    __shared__ float4 s[N][128];
    float t = 0;
    for (int k = 0; k < N - 1; k++) {
        if (k < n) __pipeline_memcpy_async(&s[k][threadIdx.x], x + k * 128 + threadIdx.x, 16);
        __pipeline_commit();
    }
    for (int k = 0; k < n; k++) {
        __pipeline_wait_prior(N - 2);
        __syncthreads();
        int f = k + N - 1;
        if (f < n) __pipeline_memcpy_async(&s[f % N][threadIdx.x], x + f * 128 + threadIdx.x, 16);
        __pipeline_commit();
        float4 v = s[k % N][127 - threadIdx.x];
        t += v.x + v.y + v.z + v.w;
    }
    o[threadIdx.x] = t;
}

extern "C" __global__ void pipe2(const float4* x, float* o, int n) {
    pipeline<2>(x, o, n);
}

extern "C" __global__ void pipe3(const float4* x, float* o, int n) {
    pipeline<3>(x, o, n);
}

extern "C" __global__ void pipe4(const float4* x, float* o, int n) {
    pipeline<4>(x, o, n);
}

extern "C" __global__ void double_buffer(const float* x, float* o, int n) {
    __shared__ float s[2][128];
    float t = 0;
    int b = 0;
    s[0][threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int k = 1; k <= n; k++) {
        float next = 0;
        if (k < n) next = x[k * 128 + threadIdx.x];
        t += s[b][127 - threadIdx.x];
        if (k < n) {
            s[b ^ 1][threadIdx.x] = next;
            __syncthreads();
        }
        b ^= 1;
    }
    o[threadIdx.x] = t;
}

extern "C" __global__ void tiles(const float* x, float* o) {
    __shared__ float s[128];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    s[threadIdx.x] = x[threadIdx.x];
    tile.sync();
    int base = threadIdx.x & ~15;
    float v = s[base + 15 - tile.thread_rank()];
    tile.sync();
    s[threadIdx.x] = v;
    cg::this_thread_block().sync();
    o[threadIdx.x] = s[127 - threadIdx.x];
}

extern "C" __global__ void special(const float* x, float* o, int n) {
    __shared__ float s[2][64];
    int w = threadIdx.x / 64, l = threadIdx.x % 64;
    if (w == 0) {
        for (int k = 0; k < n; k++) {
            if (k >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + (k & 1)) : "memory");
            s[k & 1][l] = x[k * 64 + l];
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + (k & 1)) : "memory");
        }
    } else {
        float t = 0;
        for (int k = 0; k < n; k++) {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + (k & 1)) : "memory");
            t += s[k & 1][63 - l];
            if (k + 2 < n) asm volatile("bar.arrive %0, 128;" ::"r"(3 + (k & 1)) : "memory");
        }
        o[l] = t;
    }
}

extern "C" __global__ void flag(const float* x, float* o) {
    __shared__ volatile int ready;
    __shared__ float v;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        v = x[0];
        __threadfence_block();
        ready = 1;
    }
    if (threadIdx.x == 64) {
        while (!ready);
        __threadfence_block();
        o[0] = v;
    }
}

extern "C" __global__ void skip(const float* x, float* o, int n, int bias) {
    __shared__ float s[256];
    if (bias) {
        s[threadIdx.x] = x[threadIdx.x];
    }
    float t = x[n + threadIdx.x];
    if (bias) __syncthreads();
    if (bias) t += s[255 - threadIdx.x];
    o[threadIdx.x] = t;
}

extern "C" __global__ void skip_loaded(const float* x, float* o, const int* bias) {
    __shared__ float s[256];
    int b = *bias;
    if (b) {
        s[threadIdx.x] = x[threadIdx.x];
    }
    float t = x[threadIdx.x + 7];
    if (b > 0 || b < 0) __syncthreads();
    if (b) t += s[255 - threadIdx.x];
    o[threadIdx.x] = t;
}

extern "C" __global__ void conv1d(const float* x, const float* w, float* o, int n, int r) {
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < blockDim.x + 2 * r; k += blockDim.x) {
        int j = blockIdx.x * blockDim.x + k - r;
        s[k] = j >= 0 && j < n ? x[j] : 0;
    }
    float* sw = s + blockDim.x + 2 * r;
    if (threadIdx.x <= 2 * r) sw[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    if (i >= n) return;
    float t = 0;
    for (int k = 0; k <= 2 * r; k++) t += s[threadIdx.x + k] * sw[k];
    o[i] = t;
}

extern "C" __global__ void two_arrays(const float* x, float* o, int a, int b) {
    extern __shared__ float s[];
    float* p = s;
    float* q = s + a;
    for (int i = threadIdx.x; i < a; i += blockDim.x) p[i] = x[i];
    for (int i = threadIdx.x; i < b; i += blockDim.x) q[i] = x[a + i];
    float t = 0;
    for (int i = threadIdx.x; i < a; i += blockDim.x) t += p[i];
    for (int i = threadIdx.x; i < b; i += blockDim.x) t += q[i];
    o[threadIdx.x] = t;
}

extern "C" __global__ void column_scale(float* x, int n) {
    __shared__ float s[33];
    if (threadIdx.x < 32) s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&s[i % 32], x[i]);
    __syncthreads();
    if (threadIdx.x < 32) x[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void per_thread_slot(const float* x, float* o) {
    __shared__ float4 s[64];
    float* m = (float*)&s[threadIdx.x];
    for (int i = 0; i < 4; i++) m[i] = x[threadIdx.x * 4 + i];
    float4 v = s[threadIdx.x];
    o[threadIdx.x] = v.x + v.w;
}

extern "C" __global__ void all_write(const float* x, float* o) {
    __shared__ float s;
    s = x[0];
    o[threadIdx.x] = s;
}

extern "C" __global__ void warp_rows(const float* x, float* o, int n) {
    __shared__ float s[4][64];
    int w = threadIdx.y;
    for (int r = w; r < n; r += 4) {
        s[w][threadIdx.x] = x[r * 64 + threadIdx.x];
        s[w][threadIdx.x + 32] = x[r * 64 + 32 + threadIdx.x];
        __syncwarp();
        float v = s[w][63 - threadIdx.x];
        __syncwarp();
        o[r * 32 + threadIdx.x] = v;
    }
}

extern "C" __global__ void warp_rows_1d(const float* x, float* o, int n) {
    __shared__ float s[8][64];
    int w = threadIdx.x / 32, l = threadIdx.x % 32;
    for (int r = w; r < n; r += blockDim.x / 32) {
        s[w][l] = x[r * 64 + l];
        s[w][l + 32] = x[r * 64 + 32 + l];
        __syncwarp();
        float v = s[w][63 - l];
        __syncwarp();
        o[r * 32 + l] = v;
    }
}

extern "C" __global__ void block_max(const float* x, float* o) {
    __shared__ int m;
    if (threadIdx.x == 0) m = 0;
    __syncthreads();
    atomicMax(&m, __float_as_int(x[threadIdx.x]));
    __syncthreads();
    o[threadIdx.x] = __int_as_float(m);
}

extern "C" __global__ void compact(const int* x, int* o, int* n) {
    __shared__ int c;
    __shared__ int s[256];
    if (threadIdx.x == 0) c = 0;
    __syncthreads();
    int v = x[threadIdx.x];
    if (v > 0) s[atomicAdd(&c, 1)] = v;
    __syncthreads();
    for (int i = threadIdx.x; i < c; i += blockDim.x) o[i] = s[i];
}

extern "C" __global__ void odd_even(int* x, int n) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 0; k < n; k++) {
        if ((t & 1) == (k & 1) && t < 127) {
            int a = s[t], b = s[t + 1];
            if (a > b) {
                s[t] = b;
                s[t + 1] = a;
            }
        }
        __syncthreads();
    }
    x[t] = s[t];
}

extern "C" __global__ void wave(float* x, int n) {
    __shared__ float s[2][130];
    int t = threadIdx.x;
    s[0][t + 1] = x[t];
    if (t == 0) {
        s[0][0] = 0;
        s[0][129] = 0;
        s[1][0] = 0;
        s[1][129] = 0;
    }
    __syncthreads();
    for (int k = 0; k < n; k++) {
        int a = k & 1;
        s[a ^ 1][t + 1] = 0.25f * (s[a][t] + 2 * s[a][t + 1] + s[a][t + 2]);
        __syncthreads();
    }
    x[t] = s[n & 1][t + 1];
}
