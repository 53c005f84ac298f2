// Asks a GPU for what the random programs of tests/cuda/programs.py answer: `programs FILE.ptx FIRST COUNT ...` prints a
// line for each program, its number and the FNV-1a of the words it wrote. `nvcc programs.cpp -lcuda`.
//
// The driver compiles without optimisation: with it, about one program in forty comes back with a warp that is apart at
// a `.sync` instruction for all of its lanes, and answers that are nobody's.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#define CHECK(call)                                                        \
    do {                                                                   \
        CUresult result = (call);                                          \
        if (result != CUDA_SUCCESS) {                                      \
            const char *text = nullptr;                                    \
            cuGetErrorString(result, &text);                               \
            fprintf(stderr, "%s: %s\n", #call, text ? text : "unknown");   \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

int main(int argc, char **argv) {
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536));
    const unsigned blocks = 3, threads = 96;
    std::vector<uint32_t> input(4096), output(blocks * threads * 16);
    for (size_t i = 0; i < input.size(); i++) input[i] = (uint32_t)(mixed(i) >> (i % 3 == 0 ? 56 : 32));
    CUdeviceptr in, out;
    CHECK(cuMemAlloc(&in, input.size() * 4));
    CHECK(cuMemAlloc(&out, output.size() * 4));
    CHECK(cuMemcpyHtoD(in, input.data(), input.size() * 4));
    for (int file = 1; file + 2 < argc; file += 3) {
        std::ifstream stream(argv[file]);
        std::stringstream text;
        text << stream.rdbuf();
        CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL};
        void *values[] = {(void *)0};
        CUmodule module;
        CHECK(cuModuleLoadDataEx(&module, text.str().c_str(), 1, options, values));
        const int first = atoi(argv[file + 1]), count = atoi(argv[file + 2]);
        for (int number = first; number < first + count; number++) {
            CUfunction function;
            CHECK(cuModuleGetFunction(&function, module, ("program" + std::to_string(number)).c_str()));
            CHECK(cuMemsetD32(out, 0xabababab, output.size()));
            void *arguments[] = {&in, &out};
            CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr));
            CHECK(cuCtxSynchronize());
            CHECK(cuMemcpyDtoH(output.data(), out, output.size() * 4));
            uint64_t hash = 1469598103934665603ull;
            for (uint32_t word : output) hash = (hash ^ word) * 1099511628211ull;
            printf("%d %016llx\n", number, (unsigned long long)hash);
        }
        CHECK(cuModuleUnload(module));
    }
}
