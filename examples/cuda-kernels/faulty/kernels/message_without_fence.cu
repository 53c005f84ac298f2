// Sums of rows, by two blocks each. The second takes the first one's part as soon as it sees the flag, which no fence
// keeps behind the part.
__device__ float parts[64];

extern "C" __global__ void message_without_fence(const float *x, float *out, int *flags, int h) {
    const int row = blockIdx.x / 2, second = blockIdx.x % 2;
    float sum = 0.0f;
    for (int i = second * (h / 2); i < (second ? h : h / 2); ++i) sum += x[row * h + i];
    if (!second) {
        parts[row] = sum;
        *reinterpret_cast<volatile int *>(flags + row) = 1;
        return;
    }
    while (*reinterpret_cast<volatile int *>(flags + row) != 1) {
    }
    out[row] = sum + parts[row];
}
