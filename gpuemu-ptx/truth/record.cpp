// Records what a GPU answers for the instructions of instructions.txt and matrix.txt, on inputs that are computed, not
// stored: `src/numerics` is held against these answers. Build: nvcc -O2 -std=c++17 record.cpp -o record -lcuda
// Usage: record DIRECTORY [lists]; reads the two lists in the working directory and writes
//   instructions.bin  for every line of instructions.txt: FNV-1a of all answers, then the first 16 answers (u64 each)
//   matrix.bin        for every line of matrix.txt: FNV-1a of all words, then the words of the first 2 trials (u32)
//   sweep.bin         for every approximate function, for every 2^23 consecutive bit patterns: the sum of mixed answers
//   full.bin, matrix_full.bin, tanh.bin  every answer, for whoever looks for a difference
#include <cuda.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
typedef uint64_t u64;
typedef uint32_t u32;
static void check(CUresult r, const char *what) {
    if (r != CUDA_SUCCESS) { const char *s = 0; cuGetErrorString(r, &s); fprintf(stderr, "%s: %s\n", what, s); exit(1); }
}
static u64 mix(u64 x) {
    u64 z = x + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
static u64 low(int n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }
// A float of e exponent and m mantissa bits: special values, random bits, cancelling neighbours, ties.
static u64 floats(u64 r, int e, int m) {
    u64 q = mix(r), w = mix(q), bias = low(e - 1), top = low(e), mant = q & low(m), exp;
    int64_t near = (int64_t)(w & 7) - 3, wide = (int64_t)((w >> 3) & 63) - 32;
    int t = (int)((w >> 16) % (m + 1));
    switch (r & 7) {
    case 0: {
        u64 exps[8] = {0, 0, 1, bias, top - 1, top, top, bias - 1};
        u64 ms[8] = {0, 0, 1, low(m), 1ull << (m - 1), (1ull << (m - 1)) | 1, mant, 2};
        exp = exps[(r >> 9) & 7]; mant = ms[(r >> 12) & 7]; break;
    }
    case 1: exp = (q >> 52) & top; if (m == 52) exp = (w >> 40) & top; break;
    case 2: exp = (w >> 40) & top; mant &= w & mix(w); break;
    case 3: exp = bias + near; break;
    case 4: exp = bias + near; mant &= w & mix(w); break;
    case 5: exp = bias + (w >> 3) % (2 * m + 4) - (m + 2); break;
    case 6: exp = bias + (w >> 3) % (m + 20) - 2; mant &= ~low(t); break;
    default: {
        u64 half = t ? 1ull << (t - 1) : 0, tails[4] = {half, half - 1, half + 1, 0};
        exp = bias + wide; mant = ((mant & ~low(t)) + tails[(w >> 9) & 3]) & low(m);
    }
    }
    if (exp > top) exp = (int64_t)exp < 0 ? 0 : top - 1;
    return ((r >> 8) & 1) << (e + m) | exp << m | mant;
}
static u64 integers(u64 r, int w) {
    u64 q = mix(r), v;
    u64 special[8] = {0, 1, 2, low(w), low(w) - 1, 1ull << (w - 1), low(w - 1), (1ull << (w - 1)) + 1};
    switch (r & 3) {
    case 0: v = q; break;
    case 1: v = special[(r >> 9) & 7]; break;
    case 2: v = (q & low(w)) >> ((r >> 9) % w); break;
    default: v = ~((q & low(w)) >> ((r >> 9) % w));
    }
    return v & low(w);
}
// Operands whose product (or quotient, or sum of product and addend) lies at the smallest normal number, a few units in
// the last place to either side. m mantissa bits, the smallest normal at 2^least.
static u64 edge(char op, u64 i, u64 k, int m, int least) {
    u64 r = mix(i * 8), w = mix(r), one = 1ull << m, a = one | (r & low(m));
    int64_t delta = (int64_t)(w & 7) - 3, bias = 1 - least;
    u64 b = (op == 'q' ? a : (one << (m + 1)) / a) + delta;
    if (b < one) b = one;
    if (b > 2 * one - 1) b = 2 * one - 1;
    int64_t e = (int64_t)((w >> 8) % 7) - 3;
    u64 sign = ((w >> 16) + (k == 1 ? w >> 17 : 0)) & 1;
    auto pack = [&](u64 s, int64_t exp, u64 x) { return s << (m + (m == 10 ? 5 : 8)) | (u64)(exp + bias) << m | (x & low(m)); };
    if (op == 'q') return k == 0 ? pack(sign, least, b) : pack(sign, 0, a);
    int64_t total = least - 1 + (op == 'g');
    if (k == 0) return pack(sign, e, a);
    if (k == 1) return pack(sign, total - e, b);
    return pack(((w >> 17) & 1) ^ 1, least, one | ((w >> 20) & 3));
}
static u64 operand(const std::string &kind, u64 i, u64 k) {
    u64 r = mix(i * 8 + k);
    if (kind == "t32" || kind == "g32" || kind == "q32") return edge(kind[0], i, k, 23, -126);
    if (kind == "t16" || kind == "g16") return edge(kind[0], i, k, 10, -14);
    if (kind == "hi20") return (0x3ff00000ull + i) << 32;
    if (kind == "f32") return floats(r, 8, 23);
    if (kind == "f64") return floats(r, 11, 52);
    if (kind == "f16") return floats(r, 5, 10);
    if (kind == "bf16") return floats(r, 8, 7);
    if (kind == "f16x2") return floats(r, 5, 10) | floats(mix(r + 1), 5, 10) << 16;
    if (kind == "bf16x2") return floats(r, 8, 7) | floats(mix(r + 1), 8, 7) << 16;
    if (kind == "e16") return (i * 40503) & 0xffff;
    if (kind == "u16") return integers(r, 16);
    if (kind == "u32") return integers(r, 32);
    if (kind == "u64") return integers(r, 64);
    if (kind == "r32") return mix(r) & low(32);
    if (kind == "sh") return r & 1 ? mix(r) % 80 : integers(r >> 1, 32);
    if (kind == "byte") return r & 3 ? mix(r) % 70 : mix(r) & 255;
    if (kind == "small") return (u64)((int64_t)(mix(r) % 40) - 20) & low(32);
    fprintf(stderr, "unknown kind %s\n", kind.c_str()); exit(1);
}
static char width(const std::string &kind) {
    if (kind == "f16" || kind == "bf16" || kind == "e16" || kind == "u16" || kind == "t16" || kind == "g16") return 'h';
    return kind == "f64" || kind == "u64" || kind == "hi20" ? 'd' : 'w';
}
// One element of a matrix: by trial, tame, wide, subnormal or any bits. e == 0 means integer words.
static u64 element(u64 r, int e, int m, u64 trial) {
    u64 q = mix(r), bias = low(e - 1), top = low(e), mant = q & low(m), exp;
    int kind = trial & 15;
    if (kind == 15 && e > 4) return floats(r, e, m);
    if (kind >= 14) return q & low(e + m + 1);
    if ((r & 7) == 0) { exp = (r >> 9) & 3 ? 0 : bias; mant = (r >> 11) & 1 ? mant : 0; if (!((r >> 9) & 3)) mant = 0; }
    else if (kind < 6) exp = bias + (r >> 9) % 3 - 1;
    else if (kind < 10) exp = bias + (r >> 9) % 11 - 5;
    else if (kind < 13) exp = (r >> 9) % top;
    else exp = (r >> 9) % 3;
    if ((int64_t)exp < 0) exp = 0;
    if (exp >= top) exp = top - 1;
    return ((r >> 8) & 1) << (e + m) | exp << m | mant;
}
static u64 matrix_word(const std::string &kind, u64 trial, u64 index) {
    u64 r = mix((trial << 20) + index);
    if (kind == "f16") return element(r, 5, 10, trial) | element(mix(r + 1), 5, 10, trial) << 16;
    if (kind == "bf16") return element(r, 8, 7, trial) | element(mix(r + 1), 8, 7, trial) << 16;
    if (kind == "f32") return element(r, 8, 23, trial);
    if (kind == "f64") return element(r, 11, 52, trial);
    if (kind == "e4m3" || kind == "e5m2") {
        u64 v = 0; int e = kind == "e4m3" ? 4 : 5;
        for (int j = 0; j < 4; j++) v |= element(mix(r + j), e, 7 - e, trial) << (8 * j);
        return v;
    }
    // Places of the elements of a sparse matrix, four bits a chunk: in order, in any order, or one of two.
    const char *places = kind == "ordered" ? "\x4\x8\x9\xc\xd\xe" : kind == "any" ? "\x4\x8\x9\xc\xd\xe\x1\x2\x3\x6\x7\xb" : kind == "single" ? "\x4\xe" : 0;
    if (places) {
        u64 v = 0, q = r;
        for (int j = 0; j < 8; j++, q = mix(q)) v |= (u64)places[q % strlen(places)] << (4 * j);
        return v;
    }
    if (trial & 1) { u64 v = mix(r) & low(32); return trial & 2 ? v | 0x80808080 : v & ~0x80808080ull & low(32); }
    return mix(r) & low(32);
}
static u64 fnv(u64 h, u64 w) { return (h ^ w) * 1099511628211ull; }
static const u64 FNV = 1469598103934665603ull;
static std::string trim(const std::string &s) {
    size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t\r");
    return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
static std::vector<std::vector<std::string>> table(const char *path) {
    std::ifstream f(path); std::string line; std::vector<std::vector<std::string>> rows;
    while (std::getline(f, line)) {
        if (line.empty() || line[0] == '#') continue;
        std::vector<std::string> row; std::stringstream s(line); std::string c;
        while (std::getline(s, c, '|')) row.push_back(trim(c));
        row.resize(5); rows.push_back(row);
    }
    return rows;
}
static std::vector<std::string> words(const std::string &s) {
    std::vector<std::string> v; std::stringstream t(s); std::string c;
    while (t >> c) v.push_back(c);
    return v;
}
static std::string header() {
    const char *version = getenv("PTX_VERSION");
    return std::string(".version ") + (version ? version : "9.0") + "\n.target sm_90a\n.address_size 64\n";
}
static std::string instruction_ptx(const std::vector<std::string> &row) {
    auto kinds = words(row[1]);
    std::string p = header() + ".visible .entry k(.param .u64 pi, .param .u64 po) {\n.reg .b64 in, out, x; .reg .b32 i, t; .reg .pred p;\n"
        "mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 i, i, t; mov.u32 t, %tid.x; add.u32 i, i, t;\n"
        "ld.param.u64 in, [pi]; ld.param.u64 out, [po]; mad.wide.u32 in, i, 32, in; mad.wide.u32 out, i, 8, out;\n";
    std::string args;
    for (size_t k = 0; k < kinds.size(); k++) {
        char n = "abce"[k], w = width(kinds[k]);
        std::string name(1, n), at = std::to_string(8 * k);
        p += ".reg ." + std::string(w == 'h' ? "b16 " : w == 'w' ? "b32 " : "b64 ") + name + "; ld.global.u64 x, [in+" + at + "];\n";
        p += w == 'h' ? "cvt.u16.u64 " + name + ", x;\n" : w == 'w' ? "cvt.u32.u64 " + name + ", x;\n" : "mov.b64 " + name + ", x;\n";
        args += ", " + name;
    }
    char o = row[2][0];
    p += std::string(".reg .") + (o == 'h' ? "b16" : o == 'w' ? "b32" : "b64") + " d;\n";
    p += row[3].empty() ? row[0] + " d" + args + ";\n" : row[3] + "\n";
    p += o == 'h' ? "cvt.u64.u16 x, d;\n" : o == 'w' ? "cvt.u64.u32 x, d;\n" : "mov.b64 x, d;\n";
    return p + "st.global.u64 [out], x;\nret;\n}\n";
}
// Row: name | kind and registers of a | of b | of c | more. Operands are 32-bit registers, 64-bit for f64. `d` is as `c`
// where there is no more; `d f32 8` says otherwise, `ordered 2` that the places of a sparse matrix follow, and from which
// threads they come. n: registers of a, b, c, of the places, of d.
static std::string matrix_ptx(const std::vector<std::string> &row, int n[5]) {
    std::string p = header() + ".visible .entry k(.param .u64 pi, .param .u64 po) {\n.reg .b64 in, out; .reg .b32 i, t;\n"
        "mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 i, i, t; mov.u32 t, %tid.x; add.u32 i, i, t;\n"
        "ld.param.u64 in, [pi]; ld.param.u64 out, [po]; ";
    bool d = words(row[1])[0] == "f64";
    std::string ty = d ? "b64" : "b32", store;
    if (words(row[3])[0] == "f32") ty = "b32";
    auto more = words(row[4]);
    for (int k = 0; k < 3; k++) n[k] = atoi(words(row[1 + k])[1].c_str());
    n[3] = more.size() == 2; n[4] = more.size() == 3 ? atoi(more[2].c_str()) : n[2];
    int total = n[0] + n[1] + n[2] + n[3], at = 0;
    p += "mad.wide.u32 in, i, " + std::to_string(8 * total) + ", in; mad.wide.u32 out, i, " + std::to_string(8 * n[4]) + ", out;\n";
    std::string call = row[0] + " ", ds, groups;
    for (int k = 0; k < 3; k++) {
        std::string g;
        for (int r = 0; r < n[k]; r++, at++) {
            std::string v = std::string(1, "abc"[k]) + std::to_string(r);
            p += ".reg ." + ty + " " + v + "; ld.global." + ty + " " + v + ", [in+" + std::to_string(8 * at) + "];\n";
            g += (r ? ", " : "") + v;
        }
        groups += ", {" + g + "}";
    }
    for (int r = 0; r < n[4]; r++) {
        std::string w = "d" + std::to_string(r);
        p += ".reg ." + ty + " " + w + ";\n"; ds += (r ? ", " : "") + w;
        store += "st.global." + ty + " [out+" + std::to_string(8 * r) + "], " + w + ";\n";
    }
    if (n[3]) {
        p += ".reg .b32 e; ld.global.b32 e, [in+" + std::to_string(8 * at) + "];\n";
        groups += ", e, " + more[1];
    }
    return p + call + "{" + ds + "}" + groups + ";\n" + store + "ret;\n}\n";
}
static std::string sweep_ptx(const std::string &name) {
    return header() + ".visible .entry k(.param .u64 po, .param .u32 base, .param .u64 raw) {\n.reg .b64 out, z, y; .reg .b32 i, t, b, d; .reg .pred p;\n"
        "mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 i, i, t; mov.u32 t, %tid.x; add.u32 i, i, t;\n"
        "ld.param.u32 b, [base]; ld.param.u64 out, [po]; or.b32 b, b, i;\n" + name + " d, b;\n"
        "ld.param.u64 y, [raw]; setp.eq.u64 p, y, 0; mad.wide.u32 y, i, 4, y; @!p st.global.b32 [y], d;\n"
        "mov.b64 z, {d, b};\nadd.u64 z, z, 0x9E3779B97F4A7C15; shr.u64 y, z, 30; xor.b64 z, z, y; mul.lo.u64 z, z, 0xBF58476D1CE4E5B9;\n"
        "shr.u64 y, z, 27; xor.b64 z, z, y; mul.lo.u64 z, z, 0x94D049BB133111EB; shr.u64 y, z, 31; xor.b64 z, z, y;\n"
        "red.global.add.u64 [out], z;\nret;\n}\n";
}
static CUfunction load(const std::string &ptx, CUmodule &m, const std::string &what) {
    char log[4096] = {0};
    CUjit_option o[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *v[2] = {log, (void *)sizeof log};
    if (cuModuleLoadDataEx(&m, ptx.c_str(), 2, o, v) != CUDA_SUCCESS) { fprintf(stderr, "refused: %s: %s\n", what.c_str(), log); return 0; }
    CUfunction f; check(cuModuleGetFunction(&f, m, "k"), "function");
    return f;
}
static void put(FILE *f, u64 v, int bytes) { fwrite(&v, 1, bytes, f); }
int main(int argc, char **argv) {
    auto rows = table("instructions.txt"), mats = table("matrix.txt");
    if (argc > 2 && !strcmp(argv[2], "--ptx")) { // print the modules, run nothing
        int k = 0, n[5];
        for (auto &r : rows) { std::ofstream(std::string(argv[1]) + "/" + std::to_string(k++) + ".ptx") << "// " << r[0] << "\n" << instruction_ptx(r); }
        for (auto &r : mats) { std::ofstream(std::string(argv[1]) + "/" + std::to_string(k++) + ".ptx") << "// " << r[0] << "\n" << matrix_ptx(r, n); }
        std::ofstream(std::string(argv[1]) + "/sweep.ptx") << sweep_ptx("ex2.approx.f32");
        return 0;
    }
    std::string dir = argv[1];
    auto open = [&](const char *n) { return fopen((dir + "/" + n).c_str(), "wb"); };
    check(cuInit(0), "init"); CUdevice dev; check(cuDeviceGet(&dev, 0), "device");
    CUcontext ctx; check(cuDevicePrimaryCtxRetain(&ctx, dev), "context"); check(cuCtxSetCurrent(ctx), "current");
    CUdeviceptr in, out; check(cuMemAlloc(&in, 128 << 20), "alloc"); check(cuMemAlloc(&out, 64 << 20), "alloc");
    FILE *small = open("instructions.bin"), *full = open("full.bin");
    for (auto &row : rows) {
        auto kinds = words(row[1]);
        int n = kinds[0] == "hi20" ? 1 << 21 : kinds[0] == "e16" ? 65536 : 16384, bytes = row[2][0] == 'h' ? 2 : row[2][0] == 'w' ? 4 : 8;
        std::vector<u64> x(n * 4), y(n);
        for (int i = 0; i < n; i++) for (size_t k = 0; k < kinds.size(); k++) x[i * 4 + k] = operand(kinds[k], i, k);
        CUmodule m; CUfunction f = load(instruction_ptx(row), m, row[0]);
        if (f) {
            check(cuMemcpyHtoD(in, x.data(), n * 32), "copy");
            void *a[] = {&in, &out};
            check(cuLaunchKernel(f, n / 128, 1, 1, 128, 1, 1, 0, 0, a, 0), row[0].c_str());
            check(cuMemcpyDtoH(y.data(), out, n * 8), row[0].c_str());
            check(cuModuleUnload(m), "unload");
        }
        u64 h = FNV;
        for (u64 v : y) h = fnv(h, v);
        put(small, f ? h : 0, 8);
        for (int i = 0; i < 16; i++) put(small, y[i], 8);
        for (int i = 0; i < n; i++) put(full, y[i], bytes);
    }
    fclose(small); fclose(full);
    small = open("matrix.bin"); full = open("matrix_full.bin");
    for (auto &row : mats) {
        int n[5], trials = 1024; std::string ptx = matrix_ptx(row, n);
        int total = n[0] + n[1] + n[2] + n[3];
        bool wide = words(row[3])[0] == "f64";
        std::vector<u64> x((size_t)trials * 32 * total), y((size_t)trials * 32 * n[4]);
        for (int t = 0; t < trials; t++) for (int l = 0; l < 32; l++) for (int r = 0, at = 0; at < 4; at++) for (int j = 0; j < n[at]; j++, r++)
            x[((size_t)t * 32 + l) * total + r] = matrix_word(words(row[1 + at])[0], t, l * total + r);
        CUmodule m; CUfunction f = load(ptx, m, row[0]);
        if (f) {
            check(cuMemcpyHtoD(in, x.data(), x.size() * 8), "copy");
            check(cuMemsetD8(out, 0, y.size() * 8), "set");
            void *a[] = {&in, &out};
            check(cuLaunchKernel(f, trials, 1, 1, 32, 1, 1, 0, 0, a, 0), row[0].c_str());
            check(cuMemcpyDtoH(y.data(), out, y.size() * 8), row[0].c_str());
            check(cuModuleUnload(m), "unload");
        }
        u64 h = FNV;
        for (u64 v : y) h = fnv(h, v);
        put(small, f ? h : 0, 8);
        for (int i = 0; i < 2 * 32 * n[4]; i++) put(small, y[i], wide ? 8 : 4);
        for (u64 v : y) put(full, v, wide ? 8 : 4);
    }
    fclose(small); fclose(full);
    const char *names[] = {"ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "lg2.approx.ftz.f32", "rcp.approx.f32", "rcp.approx.ftz.f32",
        "rsqrt.approx.f32", "rsqrt.approx.ftz.f32", "sqrt.approx.f32", "sqrt.approx.ftz.f32", "sin.approx.f32", "sin.approx.ftz.f32", "cos.approx.f32",
        "cos.approx.ftz.f32", "tanh.approx.f32", "rcp.rn.f32", "sqrt.rn.f32"};
    if (argc > 2) return 0; // only the lists
    FILE *sweep = open("sweep.bin");
    for (auto name : names) {
        CUmodule m; CUfunction f = load(sweep_ptx(name), m, name);
        check(cuMemsetD8(out, 0, 4096), "set");
        for (u32 c = 0; c < 512; c++) {
            CUdeviceptr at = out + 8 * c, none = 0; u32 base = c << 23; void *a[] = {&at, &base, &none};
            check(cuLaunchKernel(f, 1 << 15, 1, 1, 256, 1, 1, 0, 0, a, 0), name);
        }
        u64 sums[512]; check(cuMemcpyDtoH(sums, out, 4096), name);
        fwrite(sums, 8, 512, sweep);
        std::vector<u32> raw(1 << 23);
        // Some binades whole: name, first and last exponent.
        int from = 1, to = 0; std::string s = name;
        if (s == "tanh.approx.f32") from = 112, to = 130;
        if (from <= to) {
            FILE *g = open("tanh.bin");
            for (int e = from; e <= to; e++) {
                CUdeviceptr at = out; u32 base = (u32)e << 23; void *a[] = {&at, &base, &in};
                check(cuLaunchKernel(f, 1 << 15, 1, 1, 256, 1, 1, 0, 0, a, 0), name);
                check(cuMemcpyDtoH(raw.data(), in, 4u << 23), name);
                // Second differences are small: they compress.
                u32 p1 = 0, p2 = 0;
                for (u32 v : raw) { u32 d = v - 2 * p1 + p2; p2 = p1; p1 = v; int32_t sd = (int32_t)d; int8_t b = sd < -127 || sd > 126 ? 127 : sd; put(g, (uint8_t)b, 1); if (b == 127) put(g, d, 4); }
            }
            fclose(g);
        }
        check(cuModuleUnload(m), "unload");
    }
    fclose(sweep);
    return 0;
}
