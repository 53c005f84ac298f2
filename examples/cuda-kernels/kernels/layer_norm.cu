// Layer norm of rows with weight and bias, a block a row: mean first, then the squared distances from it.

#include "block.cuh"

extern "C" __global__ void __launch_bounds__(128)
layer_norm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
           float *__restrict__ out, int columns, float eps) {
    const size_t start = static_cast<size_t>(blockIdx.x) * columns;
    x += start;
    out += start;

    float total = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) total += x[i];
    const float mean = reduce_block(total, Sum()) / columns;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float distance = x[i] - mean;
        squares = fmaf(distance, distance, squares);
    }
    const float scale = 1.0f / sqrtf(reduce_block(squares, Sum()) / columns + eps);

    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = fmaf((x[i] - mean) * scale, weight[i], bias[i]);
}
