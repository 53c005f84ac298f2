// Softmax of rows, a block a row. Rows of a multiple of four elements are read and written four at a time.

#include "block.cuh"

__device__ float highest(float v) { return v; }
__device__ float highest(float4 v) {
    const Max larger;
    return larger(larger(v.x, v.y), larger(v.z, v.w));
}

__device__ float powers(float v, float top) { return expf(v - top); }
__device__ float4 powers(float4 v, float top) {
    return make_float4(expf(v.x - top), expf(v.y - top), expf(v.z - top), expf(v.w - top));
}

__device__ float total_of(float v) { return v; }
__device__ float total_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ float scaled(float v, float s) { return v * s; }
__device__ float4 scaled(float4 v, float s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w * s); }

template <typename Vector>
__device__ void softmax_row(const Vector *__restrict__ x, Vector *__restrict__ out, int count) {
    const Max larger;
    float top = Max::empty;
    for (int i = threadIdx.x; i < count; i += blockDim.x) top = larger(top, highest(x[i]));
    top = reduce_block(top, larger);

    float total = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) total += total_of(powers(x[i], top));
    total = reduce_block(total, Sum());

    const float scale = 1.0f / total;
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = scaled(powers(x[i], top), scale);
}

extern "C" __global__ void __launch_bounds__(128)
row_softmax(const float *__restrict__ x, float *__restrict__ out, int columns) {
    const size_t start = static_cast<size_t>(blockIdx.x) * columns;
    if (columns % 4 == 0)
        softmax_row(reinterpret_cast<const float4 *>(x + start), reinterpret_cast<float4 *>(out + start), columns / 4);
    else
        softmax_row(x + start, out + start, columns);
}
