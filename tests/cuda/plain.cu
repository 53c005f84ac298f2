// Kernels without any header, for the compiler that is a library.
__constant__ float coefficients[4] = {1.f, .5f, .25f, .125f};
__device__ int state;
template <int N> struct Unroll { template <class F> __device__ static void go(F f) { Unroll<N - 1>::go(f); f(N - 1); } };
template <> struct Unroll<0> { template <class F> __device__ static void go(F) {} };
extern "C" __global__ void gelu(const float *__restrict__ x, float *__restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    y[i] = 0.5f * v * (1.f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  }
}
extern "C" __global__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float sa[16][17], sb[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    sa[threadIdx.y][threadIdx.x] = (y < n && k + threadIdx.x < n) ? a[y * n + k + threadIdx.x] : 0;
    sb[threadIdx.y][threadIdx.x] = (x < n && k + threadIdx.y < n) ? b[(k + threadIdx.y) * n + x] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) s += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  if (x < n && y < n) c[y * n + x] = s;
}
extern "C" __global__ void poly(const double *x, double *y, float *z) {
  double v = x[threadIdx.x], s = 0;
  Unroll<4>::go([&](int i) { s = s * v + coefficients[i]; });
  y[threadIdx.x] = s / v;
  z[threadIdx.x] = __fdividef(z[threadIdx.x], 3.f) + __sinf(z[0]) + __fsqrt_rd(z[1]) + __fadd_ru(z[2], z[3]) + z[4] / z[5] + __saturatef(z[6]);
}
extern "C" __global__ void scan(int *x, unsigned *m) {
  int v = x[threadIdx.x];
  for (int d = 1; d < 32; d *= 2) { int o = __shfl_up_sync(~0u, v, d); if ((threadIdx.x & 31) >= d) v += o; }
  x[threadIdx.x] = v;
#if __CUDA_ARCH__ >= 800
  v += __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, (unsigned)v);
#endif
  m[threadIdx.x] = v + __activemask();
  atomicCAS(&state, 1, 2); atomicExch(&state, 3); atomicInc(m, 7u); atomicDec(m, 9u); atomicXor(m, 5u); atomicMin(x, -4); atomicAdd_block(x, 2); atomicAdd_system(x, 3);
}
