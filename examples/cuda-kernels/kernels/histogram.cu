// counts[x[i]] += 1: every block counts in shared memory and then adds to the counts of all.

extern "C" __global__ void __launch_bounds__(256)
histogram(const int *__restrict__ x, int *__restrict__ counts, int n, int bins) {
    extern __shared__ int mine[];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) mine[bin] = 0;
    __syncthreads();
    const int threads = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        if (mine[bin] != 0) atomicAdd(&counts[bin], mine[bin]);
}
