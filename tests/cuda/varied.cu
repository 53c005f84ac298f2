// What compilers make of C++ in kernels: templates, tables, pointers, recursion, virtual calls, prints, the heap, tensor cores.
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Without optimisation the compiler has no such operation.
#ifdef __CUDACC_DEBUG__
#define DOT4(a, b) ((a) * (b))
#else
#define DOT4(a, b) __dp4a(a, b, 3)
#endif

__constant__ float weights[16] = {1.f, 2.f, 3.f, -4.f, 0.5f};
__constant__ int lookup[4][4];
__device__ unsigned long long counter = 0x123456789abcdefULL;
__device__ const char *const names[] = {"zero", "one", "two"};
__device__ float global_table[64];
struct Pair { int a; double b; char tag[3]; };
__device__ Pair pairs[3] = {{1, 2.5, "ab"}, {-1, -0.0, "c"}, {}};

typedef float (*Operator)(float, float);
__device__ float plus(float a, float b) { return a + b; }
__device__ float times(float a, float b) { return a * b; }
__device__ float power(float a, float b) { return powf(a, b); }
__device__ Operator operators[3] = {plus, times, power};

template <typename T, int N> __device__ T fold(const T *x) {
  T total = T(0);
#pragma unroll
  for (int i = 0; i < N; ++i) total = total + x[i];
  return total;
}
template <typename T, int N> __global__ void folded(const T *x, T *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = fold<T, N>(x + threadIdx.x * N); }
template __global__ void folded<float, 4>(const float *, float *);
template __global__ void folded<double, 3>(const double *, double *);
template __global__ void folded<__half, 8>(const __half *, __half *);
template __global__ void folded<__nv_bfloat16, 2>(const __nv_bfloat16 *, __nv_bfloat16 *);

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ Pair make_pair(int a, double b) { Pair p{}; p.a = a; p.b = b; return p; }

extern "C" __global__ void recursion(int *out, int n) { out[threadIdx.x] = fibonacci(n + threadIdx.x % 5); }

extern "C" __global__ void pointers(const float *x, const int *which, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = operators[which[i]](x[i], weights[i & 15]);
}

extern "C" __global__ void switched(const int *op, const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (op[i]) {
  case 0: v = sinf(v); break;
  case 1: v = cosf(v) + 1; break;
  case 2: v = expf(v); break;
  case 3: v = logf(v); break;
  case 4: v = sqrtf(v); break;
  case 5: v = rsqrtf(v); break;
  case 6: v = tanhf(v); break;
  case 7: v = erff(v); break;
  case 8: v = cbrtf(v); break;
  default: v = -v;
  }
  out[i] = v;
}

extern "C" __global__ void prints(int n, double d, const char *) {
  printf("thread %d of %d: %f %s\n", threadIdx.x, n, d, names[threadIdx.x % 3]);
  if (n < 0) __trap();
}

extern "C" __global__ void asserted(int n);
#undef NDEBUG
#include <cassert>
extern "C" __global__ void asserted(int n) { assert(n > 0 && "positive"); }

extern "C" __global__ void heap(int **out, int n) {
  int *p = (int *)malloc(n * sizeof(int));
  if (p) for (int i = 0; i < n; ++i) p[i] = i * i;
  out[threadIdx.x] = p;
  if (n == 7) free(p);
  int *q = new int[3];
  delete[] q;
}

extern "C" __global__ void doubles(const double *x, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sin(x[i]) * exp(x[i]) + log(fabs(x[i])) / sqrt(x[i] + 2) + fma(x[i], 2.0, 1e300);
}

extern "C" __global__ void halves(const __half2 *x, __half2 *y, __nv_bfloat162 *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2 a = x[i];
  y[i] = __hfma2(a, a, __float2half2_rn(0.5f));
  y[i] = h2exp(__hmax2(y[i], a));
  z[i] = __hmul2(z[i], __floats2bfloat162_rn(1.0f, __low2float(a)));
  atomicAdd(&y[0], a);
  atomicAdd((__half *)&y[1], __low2half(a));
}

extern "C" __global__ void wmma_kernel(const __half *a, const __half *b, float *c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  for (int k = 0; k < 4; ++k) {
    load_matrix_sync(fa, a + 16 * k, 64);
    load_matrix_sync(fb, b + 16 * k, 64);
    mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  store_matrix_sync(c, fc, 16, mem_row_major);
}

extern "C" __global__ void cooperative(const int *x, int *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  cg::coalesced_group active = cg::coalesced_threads();
  int v = block.thread_rank() < n ? x[block.thread_rank()] : 0;
  int sum = cg::reduce(tile, v, cg::plus<int>());
  if (tile.thread_rank() == 0) atomicAdd(out, sum);
  if (v > 3) {
    cg::coalesced_group some = cg::coalesced_threads();
    if (some.thread_rank() == 0) atomicMax(out + 1, (int)some.size());
  }
  out[2] = active.size();
  cg::this_grid().sync();
  out[3 + block.thread_rank()] = __shfl_xor_sync(0xffffffffu, v, 5) + __ballot_sync(0xffffffffu, v & 1) + __popc(__match_any_sync(0xffffffffu, v));
}

extern "C" __global__ void assembly(const unsigned *x, unsigned *out) {
  unsigned r, lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("{\n\t.reg .pred p;\n\t.reg .u32 t;\n\tsetp.ne.u32 p, %1, 0;\n\tselp.u32 t, 7, 9, p;\n\tlop3.b32 %0, %1, t, %2, 0x96;\n\t}" : "=r"(r) : "r"(x[threadIdx.x]), "r"(lane));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + 64));
  out[threadIdx.x] = __byte_perm(r, lane, 0x3210) + DOT4((int)r, (int)lane) + __brev(r) + __clz(r) + __funnelshift_l(r, lane, 3) + __vadd4(r, lane);
}

extern "C" __global__ void __launch_bounds__(256, 2) dynamic_shared(const float4 *__restrict__ x, float *out, long long n) {
  extern __shared__ float tile[];
  __shared__ volatile int flag[4];
  __shared__ double extra[8][9];
  float4 v = __ldg(x + threadIdx.x);
  tile[threadIdx.x] = v.x + v.y + v.z + v.w;
  flag[threadIdx.x & 3] = 1;
  extra[threadIdx.x & 7][threadIdx.x % 9] = v.x;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];
    __syncthreads();
  }
  if (!threadIdx.x) { out[blockIdx.x] = tile[0] + extra[1][2] + flag[0]; atomicAdd(&counter, (unsigned long long)n); __threadfence_system(); }
  int any = __syncthreads_or(v.x > 0);
  if (any) out[1] = clock64() + clock();
}

extern "C" __global__ void big_locals(float *out, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = out[i];
  for (int i = 0; i < n; ++i) a[(i * 7) & 63] += a[(i * 13) & 63];
  float s = 0;
  for (int i = 0; i < 64; ++i) s += a[i];
  out[0] = s;
  Pair p = make_pair(n, s);
  pairs[n % 3] = p;
  out[1] = p.b;
}

extern "C" __global__ void textured(cudaTextureObject_t t, cudaSurfaceObject_t s, float *out) {
  float4 v = tex2D<float4>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
  surf2Dwrite(v, s, threadIdx.x * 16, blockIdx.x);
  out[threadIdx.x] = v.x + tex1Dfetch<float>(t, 3);
}

extern "C" __global__ void integers(const long long *x, const unsigned char *b, const short *h, long long *out, unsigned __int128 *w) {
  long long v = x[threadIdx.x];
  long long d = x[threadIdx.x + 1];
  out[threadIdx.x] = v / d + v % d + __mulhi((int)v, (int)d) + __mul64hi(v, d) + b[threadIdx.x] * h[threadIdx.x] + (v << (d & 63)) + __ffsll(v);
  w[threadIdx.x] = (unsigned __int128)v * d + w[1];
}

struct Base { __device__ virtual float f(float) const = 0; __device__ virtual ~Base() {} };
struct A : Base { float k; __device__ A(float k) : k(k) {} __device__ float f(float x) const override { return k * x; } };
struct B : Base { __device__ float f(float x) const override { return x * x; } };
extern "C" __global__ void virtuals(float *out, int n) {
  Base *p = n > 3 ? (Base *)new A(2.f) : (Base *)new B;
  out[threadIdx.x] = p->f(out[threadIdx.x]);
  delete p;
}

extern "C" __global__ void passed_struct(Pair p, float3 q, int2 r, bool flag, char c, unsigned short s, double *out) {
  out[0] = p.a + p.b + q.x + q.z + r.y + (flag ? c : s) + p.tag[1];
}
