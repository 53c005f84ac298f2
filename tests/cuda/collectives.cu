// CUB's collectives of a block and of a warp: right kernels with many ways through shared memory.
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>
template <cub::BlockReduceAlgorithm A>
__device__ void red(const int* x, int* o) {
    using B = cub::BlockReduce<int, 128, A>;
    __shared__ typename B::TempStorage t;
    int v = x[blockIdx.x * 128 + threadIdx.x];
    int s = B(t).Sum(v);
    __syncthreads();
    int m = B(t).Reduce(v, cuda::maximum<>{});
    if (threadIdx.x == 0) {
        o[0] = s;
        o[1] = m;
    }
}

extern "C" __global__ void r1(const int* x, int* o) {
    red<cub::BLOCK_REDUCE_RAKING>(x, o);
}

extern "C" __global__ void r2(const int* x, int* o) {
    red<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, o);
}

extern "C" __global__ void r3(const int* x, int* o) {
    red<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x, o);
}

template <cub::BlockScanAlgorithm A>
__device__ void scn(const int* x, int* o) {
    using B = cub::BlockScan<int, 128, A>;
    __shared__ typename B::TempStorage t;
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).ExclusiveSum(v, v);
    __syncthreads();
    int w;
    B(t).InclusiveSum(v[0], w);
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i] + w;
}

extern "C" __global__ void s1(const int* x, int* o) {
    scn<cub::BLOCK_SCAN_RAKING>(x, o);
}

extern "C" __global__ void s2(const int* x, int* o) {
    scn<cub::BLOCK_SCAN_RAKING_MEMOIZE>(x, o);
}

extern "C" __global__ void s3(const int* x, int* o) {
    scn<cub::BLOCK_SCAN_WARP_SCANS>(x, o);
}

extern "C" __global__ void sort(const int* x, int* o) {
    using B = cub::BlockRadixSort<int, 128, 4>;
    __shared__ typename B::TempStorage t;
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).Sort(v);
    __syncthreads();
    B(t).SortDescending(v);
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i];
}

struct Less {
    __device__ bool operator()(int a, int b) const {
        return a < b;
    }
};

extern "C" __global__ void msort(const int* x, int* o) {
    using B = cub::BlockMergeSort<int, 128, 4>;
    __shared__ typename B::TempStorage t;
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).Sort(v, Less());
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i];
}

template <cub::BlockHistogramAlgorithm A>
__device__ void his(const unsigned char* x, int* o) {
    using B = cub::BlockHistogram<unsigned char, 128, 4, 256, A>;
    __shared__ typename B::TempStorage t;
    __shared__ unsigned h[256];
    unsigned char v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).Histogram(v, h);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 128) o[i] = h[i];
}

extern "C" __global__ void h1(const unsigned char* x, int* o) {
    his<cub::BLOCK_HISTO_ATOMIC>(x, o);
}

extern "C" __global__ void h2(const unsigned char* x, int* o) {
    his<cub::BLOCK_HISTO_SORT>(x, o);
}

extern "C" __global__ void ex(const int* x, int* o) {
    using B = cub::BlockExchange<int, 128, 4>;
    __shared__ typename B::TempStorage t;
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).StripedToBlocked(v, v);
    __syncthreads();
    B(t).BlockedToWarpStriped(v, v);
    __syncthreads();
    int r[4];
    for (int i = 0; i < 4; i++) r[i] = v[i] & 511;
    B(t).ScatterToStriped(v, v, r);
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i];
}

template <cub::BlockLoadAlgorithm A, cub::BlockStoreAlgorithm C>
__device__ void lds(const int* x, int* o, int n) {
    using B = cub::BlockLoad<int, 128, 4, A>;
    using D = cub::BlockStore<int, 128, 4, C>;
    __shared__ union {
        typename B::TempStorage a;
        typename D::TempStorage b;
    } t;
    int v[4];
    B(t.a).Load(x, v, n, 0);
    __syncthreads();
    D(t.b).Store(o, v, n);
}

extern "C" __global__ void l1(const int* x, int* o, int n) {
    lds<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>(x, o, n);
}

extern "C" __global__ void l2(const int* x, int* o, int n) {
    lds<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(x, o, n);
}

extern "C" __global__ void l3(const int* x, int* o, int n) {
    lds<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED, cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>(x, o, n);
}

extern "C" __global__ void adj(const int* x, int* o) {
    using B = cub::BlockAdjacentDifference<int, 128>;
    __shared__ typename B::TempStorage t;
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).SubtractLeft(v, v, cuda::std::minus<>{});
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i];
}

extern "C" __global__ void disc(const int* x, int* o) {
    using B = cub::BlockDiscontinuity<int, 128>;
    __shared__ typename B::TempStorage t;
    int v[4];
    int f[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t).FlagHeads(f, v, cuda::std::not_equal_to<>{});
    __syncthreads();
    B(t).FlagTails(f, v, cuda::std::not_equal_to<>{});
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = f[i];
}

extern "C" __global__ void wr(const double* x, double* o) {
    using B = cub::WarpReduce<double, 16>;
    __shared__ typename B::TempStorage t[8];
    double v = x[threadIdx.x];
    double s = B(t[threadIdx.x / 16]).Sum(v);
    using C = cub::WarpScan<double, 24>;
    __shared__ typename C::TempStorage u[4];
    double w = 0;
    if (threadIdx.x % 32 < 24) C(u[threadIdx.x / 32]).InclusiveSum(v, w);
    o[threadIdx.x] = s + w;
}

extern "C" __global__ void wms(const int* x, int* o) {
    using B = cub::WarpMergeSort<int, 4, 32>;
    __shared__ typename B::TempStorage t[4];
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = x[threadIdx.x * 4 + i];
    B(t[threadIdx.x / 32]).Sort(v, Less());
    using E = cub::WarpExchange<int, 4, 16>;
    __shared__ typename E::TempStorage e[8];
    E(e[threadIdx.x / 16]).StripedToBlocked(v, v);
    for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = v[i];
}

extern "C" __global__ void shuf(const int* x, int* o) {
    using B = cub::BlockShuffle<int, 128>;
    __shared__ B::TempStorage t;
    int v = x[threadIdx.x], w;
    B(t).Offset(v, w, 1);
    __syncthreads();
    B(t).Rotate(w, v, 3);
    o[threadIdx.x] = v;
}

extern "C" __global__ void rle(const int* x, const unsigned* l, int* o) {
    using B = cub::BlockRunLengthDecode<int, 128, 2, 4>;
    __shared__ typename B::TempStorage t;
    int v[2];
    unsigned n[2];
    for (int i = 0; i < 2; i++) {
        v[i] = x[threadIdx.x * 2 + i];
        n[i] = l[threadIdx.x * 2 + i];
    }
    unsigned total = 0;
    B d(t, v, n, total);
    int w[4];
    for (unsigned k = 0; k < total; k += 512) {
        d.RunLengthDecode(w, k);
        for (int i = 0; i < 4; i++) o[k + threadIdx.x * 4 + i] = w[i];
        __syncthreads();
    }
}
