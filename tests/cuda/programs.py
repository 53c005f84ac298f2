"""Random CUDA programs: integers, floats and cross-lane operations under nested, data-dependent control flow.

`programs.py FIRST COUNT` prints the source of so many kernels, `programFIRST` and those that follow. The same numbers
always give the same text. Each kernel reads 4,096 words and writes 16 words a thread, in blocks of 96 threads. None
races, none reads what it did not write, every shift is in range and no division is by zero, so that there is one right
answer, whatever compiles it. What an H200 answers stands in `gpuemu-ptx/truth/programs.txt`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

INTEGERS = ["u0", "u1", "u2", "u3", "u4", "u5"]
LONGS = ["l0", "l1", "l2"]
FLOATS = ["f0", "f1", "f2"]
DOUBLES = ["d0", "d1"]
CONSTANTS = [0, 1, 2, 3, 5, 7, 31, 32, 255, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


class Program:
    """Writes one kernel and the functions it calls."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random.Random(number)
        self.loops = 0

    def one(self, choices: list[Callable[[], str]]) -> str:
        """One of several forms; the others are not evaluated."""
        return self.random.choice(choices)()

    def integer(self, depth: int = 0) -> str:
        """An expression of 32 bits without a sign."""
        r = self.random

        def a() -> str:
            return self.integer(depth + 1)

        if depth > 2 or r.random() < 0.2:
            constant = r.choice([*CONSTANTS, r.getrandbits(32)])
            return r.choice([*INTEGERS, *INTEGERS, f"{constant}u"])
        return self.one(
            [
                lambda: f"({a()} + {a()})",
                lambda: f"({a()} - {a()})",
                lambda: f"({a()} * {a()})",
                lambda: f"({a()} / ({a()} | 1u))",
                lambda: f"({a()} % ({a()} | 1u))",
                lambda: f"(unsigned)((int){a()} / (int)(({a()} & 0xffffu) | 1u))",
                lambda: f"(unsigned)((int){a()} % (int)(({a()} & 0xffu) | 1u))",
                lambda: f"({a()} & {a()})",
                lambda: f"({a()} ^ {a()})",
                lambda: f"({a()} | ~{a()})",
                lambda: f"({a()} << ({a()} & 31u))",
                lambda: f"({a()} >> ({a()} & 31u))",
                lambda: f"(unsigned)((int){a()} >> ({a()} & 31u))",
                lambda: f"__funnelshift_{r.choice(['l', 'r', 'lc', 'rc'])}({a()}, {a()}, {a()})",
                lambda: f"__byte_perm({a()}, {a()}, {a()})",
                lambda: f"(unsigned)__popc({a()})",
                lambda: f"(unsigned)__clz((int){a()})",
                lambda: f"(unsigned)__ffs((int){a()})",
                lambda: f"__brev({a()})",
                lambda: f"(unsigned)__mulhi((int){a()}, (int){a()})",
                lambda: f"__umulhi({a()}, {a()})",
                lambda: f"(unsigned)__mul24((int){a()}, (int){a()})",
                lambda: f"({self.condition(depth + 1)} ? {a()} : {a()})",
                lambda: f"(unsigned)({r.choice(LONGS)} >> {r.randrange(33)})",
                lambda: f"bits_of({self.float(depth + 1)})",
                lambda: f"(unsigned)(unsigned char){a()}",
                lambda: f"(unsigned)(int)(short){a()}",
                lambda: f"(unsigned)(int)(signed char){a()}",
                lambda: f"(unsigned)__dp4a((int){a()}, (int){a()}, (int){a()})",
                lambda: f"__dp2a_lo({a()}, {a()}, {a()})",
                lambda: f"max({a()}, {a()})",
                lambda: f"(unsigned)min((int){a()}, (int){a()})",
                lambda: f"__usad({a()}, {a()}, {a()})",
                lambda: f"__float2uint_rz({self.float(depth + 1)})",
                lambda: f"(unsigned)__float2int_rn({self.float(depth + 1)})",
                lambda: f"__vadd4({a()}, {a()})",
                lambda: f"__vsubus4({a()}, {a()})",
                lambda: f"__vabsdiffu2({a()}, {a()})",
                lambda: f"__vmaxs2({a()}, {a()})",
                lambda: f"__vcmpgtu4({a()}, {a()})",
                lambda: f"__vavgu4({a()}, {a()})",
                lambda: f"half_bits(__hadd(half_of({a()}), half_of({a()})))",
                lambda: f"half_bits(__hfma(half_of({a()}), half_of({a()}), half_of({a()})))",
                lambda: f"half_bits(__float2half_rn({self.float(depth + 1)}))",
                lambda: f"pair_bits(__hmul2(pair_of({a()}), pair_of({a()})))",
                lambda: f"pair_bits(__hmax2(pair_of({a()}), pair_of({a()})))",
            ]
        )

    def long(self, depth: int = 0) -> str:
        """An expression of 64 bits without a sign."""

        def a() -> str:
            return self.long(depth + 1)

        if depth > 1 or self.random.random() < 0.2:
            return self.random.choice(LONGS)
        return self.one(
            [
                lambda: f"({a()} + {a()})",
                lambda: f"({a()} - {a()})",
                lambda: f"({a()} * {a()})",
                lambda: f"((unsigned long long){self.integer(2)} << ({self.integer(3)} & 63u))",
                lambda: f"({a()} ^ {a()})",
                lambda: f"({a()} >> ({self.integer(2)} & 63u))",
                lambda: f"(unsigned long long)((long long){a()} >> ({self.integer(2)} & 63u))",
                lambda: f"({a()} / ({a()} | 1ull))",
                lambda: f"({a()} % ({a()} | 1ull))",
                lambda: f"__umul64hi({a()}, {a()})",
                lambda: f"(unsigned long long)__popcll({a()})",
                lambda: f"__brevll({a()})",
                lambda: f"({self.condition(2)} ? {a()} : {a()})",
                lambda: f"((unsigned long long){self.integer(2)} * {self.integer(2)})",
                lambda: f"((unsigned long long)((long long)(int){self.integer(2)} * (int){self.integer(2)}))",
            ]
        )

    def float(self, depth: int = 0) -> str:
        """An expression of binary32, with operations that are rounded as IEEE 754 says."""

        def a() -> str:
            return self.float(depth + 1)

        if depth > 2 or self.random.random() < 0.2:
            return self.random.choice([*FLOATS, *FLOATS, "0.5f", "-1.25f", "3.0f", "1e-3f", "1e20f"])
        return self.one(
            [
                lambda: f"({a()} + {a()})",
                lambda: f"({a()} - {a()})",
                lambda: f"({a()} * {a()})",
                lambda: f"fmaf({a()}, {a()}, {a()})",
                lambda: f"({a()} / {a()})",
                lambda: f"fminf({a()}, {a()})",
                lambda: f"fmaxf({a()}, {a()})",
                lambda: f"sqrtf(fabsf({a()}))",
                lambda: f"(float)(int){self.integer(2)}",
                lambda: f"(float){self.integer(2)}",
                lambda: f"(float){self.long(1)}",
                lambda: f"floorf({a()})",
                lambda: f"rintf({a()})",
                lambda: f"copysignf({a()}, {a()})",
                lambda: f"({self.condition(2)} ? {a()} : {a()})",
                lambda: f"(float){self.random.choice(DOUBLES)}",
                lambda: f"__fadd_rz({a()}, {a()})",
                lambda: f"__fmul_ru({a()}, {a()})",
                lambda: f"__half2float(half_of({self.integer(2)}))",
            ]
        )

    def double(self, depth: int = 0) -> str:
        """An expression of binary64."""

        def a() -> str:
            return self.double(depth + 1)

        if depth > 1 or self.random.random() < 0.2:
            return self.random.choice(DOUBLES)
        return self.one(
            [
                lambda: f"({a()} + {a()})",
                lambda: f"({a()} * {a()})",
                lambda: f"fma({a()}, {a()}, {a()})",
                lambda: f"({a()} / {a()})",
                lambda: f"(double){self.integer(2)}",
                lambda: f"(double){self.float(2)}",
                lambda: f"sqrt(fabs({a()}))",
                lambda: f"fmin({a()}, {a()})",
            ]
        )

    def condition(self, depth: int = 0) -> str:
        """A condition, most often another in each thread."""
        r = self.random

        def deeper() -> str:
            return self.condition(2) if depth < 2 else f"({r.choice(INTEGERS)} != {r.choice(INTEGERS)})"

        return self.one(
            [
                lambda: f"({self.integer(depth + 2)} < {self.integer(depth + 2)})",
                lambda: f"((int){self.integer(depth + 2)} >= (int){self.integer(depth + 2)})",
                lambda: f"(({self.integer(depth + 2)} & {1 << r.randrange(6)}u) != 0u)",
                lambda: f"({self.float(2)} < {self.float(2)})",
                lambda: f"({r.choice(LONGS)} > {r.choice(LONGS)})",
                lambda: f"(((tid >> {r.randrange(6)}) & 1u) != 0u)",
                lambda: f"({deeper()} && {deeper()})",
                lambda: f"({deeper()} || !{deeper()})",
            ]
        )

    def statement(self, depth: int, indent: str, loop: bool) -> list[str]:
        """One statement, with what is inside it. `loop`: whether it may leave one."""
        r = self.random
        kind = r.randrange(22)
        u = r.choice(INTEGERS)
        if kind < 5 or depth > 3:
            return [f"{indent}{u} {r.choice(['=', '=', '+=', '^='])} {self.integer()};"]
        if kind < 6:
            return [f"{indent}{r.choice(LONGS)} {r.choice(['=', '+=', '^='])} {self.long()};"]
        if kind < 8:
            return [f"{indent}{r.choice(FLOATS)} = {self.float()};"]
        if kind < 9:
            return [f"{indent}{r.choice(DOUBLES)} = {self.double()};"]
        if kind < 10:
            return [f"{indent}words[{u} & 15u] = {self.integer()};"]
        if kind < 11:
            return [f"{indent}{u} ^= words[{r.choice(INTEGERS)} & 15u];"]
        if kind < 12:
            return [
                f"{indent}{u} ^= ((unsigned char *)bytes)[{r.choice(INTEGERS)} & 63u];",
                f"{indent}((unsigned short *)bytes)[{r.choice(INTEGERS)} & 31u] = (unsigned short){self.integer(2)};",
            ]
        if kind < 15:
            lines = [f"{indent}if ({self.condition()}) {{", *self.block(depth + 1, indent + "    ", loop)]
            if r.random() < 0.6:
                lines += [f"{indent}}} else {{", *self.block(depth + 1, indent + "    ", loop)]
            return [*lines, f"{indent}}}"]
        if kind < 17:
            self.loops += 1
            i = f"i{self.loops}"
            bound = r.choice([f"({self.integer(2)} & 7u)", "3u", f"((tid & {r.choice([1, 3, 7])}u) + 1u)"])
            return [
                "#pragma unroll 1" if r.random() < 0.7 else "",
                f"{indent}for (unsigned {i} = 0; {i} < {bound} && {i} < 8u; ++{i}) {{",
                f"{indent}    {u} += {i};",
                *self.block(depth + 1, indent + "    ", True),
                f"{indent}}}",
            ]
        if kind < 18:
            if not loop:
                return [f"{indent}{u} = pointer{self.number}[{r.choice(INTEGERS)} & 1u]({u}, {r.choice(INTEGERS)});"]
            return [f"{indent}if ({self.condition()}) {r.choice(['break', 'continue'])};"]
        if kind < 20:
            lines = [f"{indent}switch ({u} & 7u) {{"]
            for case in range(r.randrange(3, 8)):
                lines += [f"{indent}case {case}:", *self.statement(depth + 2, indent + "    ", False)]
                if r.random() < 0.8:
                    lines.append(f"{indent}    break;")
            return [*lines, f"{indent}default:", *self.statement(depth + 2, indent + "    ", False), f"{indent}}}"]
        if kind < 21:
            # Half a warp by itself: each names its own lanes.
            lane, other = r.choice([1, 2, 4, 8]), r.choice(INTEGERS)
            if depth > 0:
                return [f"{indent}{u} += {other};"]
            return [
                f"{indent}if ((threadIdx.x & 16u) != 0u) {{",
                f"{indent}    {u} ^= __shfl_xor_sync(0xffff0000u, {other}, {lane});",
                f"{indent}}} else {{",
                f"{indent}    {u} += __shfl_down_sync(0x0000ffffu, {other}, {lane}, 16);",
                f"{indent}}}",
            ]
        call = f"helper{self.number}_{r.randrange(2)}({r.choice(INTEGERS)}, {r.choice(INTEGERS)}, {r.choice(FLOATS)})"
        return [f"{indent}{u} = {call};"]

    def block(self, depth: int, indent: str, loop: bool) -> list[str]:
        """A few statements."""
        lines: list[str] = []
        for _ in range(self.random.randrange(1, 4)):
            lines += self.statement(depth, indent, loop)
        return lines

    def together(self) -> str:
        """What all threads of a warp or block do together, where none is missing."""
        r = self.random
        x, y, all_lanes = r.choice(INTEGERS), r.choice(INTEGERS), "0xffffffffu"
        lane = r.choice([1, 2, 3, 4, 8, 16, 31])
        return self.one(
            [
                lambda: f"{x} ^= __shfl_xor_sync({all_lanes}, {y}, {lane});",
                lambda: f"{x} += __shfl_down_sync({all_lanes}, {y}, {lane}, {r.choice([8, 16, 32])});",
                lambda: f"{x} = __shfl_sync({all_lanes}, {y}, {self.integer(3)}, {r.choice([4, 32])});",
                lambda: f"{x} ^= __ballot_sync({all_lanes}, {self.condition()});",
                lambda: f"{x} += __any_sync({all_lanes}, {self.condition()}) ? 3u : 5u;",
                lambda: f"{x} ^= __match_any_sync({all_lanes}, {y} & 3u);",
                lambda: f"{x} += __reduce_add_sync({all_lanes}, {y});",
                lambda: f"{x} ^= __reduce_max_sync({all_lanes}, {y});",
                lambda: (
                    f"__syncthreads(); shared[threadIdx.x] = {y}; __syncthreads(); "
                    f"{x} ^= shared[(threadIdx.x * 7u + {r.randrange(64)}u) % 96u];"
                ),
                lambda: (
                    f"__syncthreads(); if ({self.condition()}) atomicAdd(&counters[{y} & 3u], {x} & 0xffu); "
                    f"__syncthreads(); {x} += counters[{r.randrange(4)}];"
                ),
                lambda: f"{x} += (unsigned)__syncthreads_count({self.condition()});",
                lambda: f"{x} ^= __syncthreads_or({self.condition()}) ? 0x55u : 0xaau;",
            ]
        )

    def source(self) -> str:
        """The kernel and its functions."""
        n, r = self.number, self.random
        body: list[str] = []
        for _ in range(r.randrange(5, 9)):
            for _ in range(r.randrange(2, 5)):
                body += self.statement(0, "    ", False)
            body.append(f"    {self.together()}")
        lines = "\n".join(line for line in body if line)
        return f"""
__device__ __noinline__ unsigned helper{n}_0(unsigned a, unsigned b, float x) {{
    if ((a & 7u) == 0u || x != x) return b ^ {r.getrandbits(16)}u;
    unsigned c = helper{n}_0(a >> 3, b * 2654435761u + (unsigned)(int)fminf(fmaxf(x, -1e6f), 1e6f), x * 0.5f);
    return (b & 1u) != 0u ? c + a : c ^ b;
}}
__device__ __noinline__ unsigned helper{n}_1(unsigned a, unsigned b, float x) {{
    unsigned s = 0;
    #pragma unroll 1
    while (a != 0u) {{ s += b / (a | 1u); a &= a - 1u; if ((s & {1 << r.randrange(8)}u) != 0u) break; }}
    return s + (unsigned)(x > 0.0f);
}}
__device__ __noinline__ unsigned first{n}(unsigned a, unsigned b) {{ return a * {r.getrandbits(31) | 1}u + (b >> 3); }}
__device__ __noinline__ unsigned second{n}(unsigned a, unsigned b) {{
    unsigned s = a;
    #pragma unroll 1
    for (unsigned i = 0; i < (b & 3u); ++i) s = s * 5u + i;
    return s;
}}
__device__ unsigned (*const pointer{n}[2])(unsigned, unsigned) = {{first{n}, second{n}}};
extern "C" __global__ void program{n}(const unsigned *in, unsigned *out) {{
    __shared__ unsigned shared[96];
    __shared__ unsigned counters[4];
    unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 4u) counters[threadIdx.x] = 0u;
    unsigned words[16], bytes[16];
    #pragma unroll 1
    for (int i = 0; i < 16; ++i) {{
        words[i] = in[(tid * 5u + i) & 4095u];
        bytes[i] = in[(tid * 3u + i * 7u) & 4095u];
    }}
    uint4 four = ((const uint4 *)in)[tid & 1023u];
    uint2 two = ((const uint2 *)in)[(tid * 13u) & 2047u];
    unsigned u0 = four.x, u1 = four.y, u2 = four.z, u3 = four.w, u4 = tid, u5 = two.x & 31u;
    unsigned long long l0 = (unsigned long long)two.y << 32 | u1, l1 = u2 * 3ull, l2 = tid;
    float f0 = (float)(int)u0 * 1e-6f, f1 = (float)tid, f2 = __uint_as_float(u3);
    if (f2 != f2) f2 = 1.0f;
    double d0 = (double)u1, d1 = (double)tid * 0.125;
    __syncthreads();
{lines}
    unsigned *o = out + tid * 16u;
    *(uint4 *)o = make_uint4(u0, u1, u2, u3);
    *(uint2 *)(o + 4) = make_uint2(u4, u5);
    *(unsigned long long *)(o + 6) = l0 ^ l1 * 3ull ^ l2 * 7ull;
    o[8] = bits_of(f0); o[9] = bits_of(f1); o[10] = bits_of(f2);
    unsigned long long bits0 = d0 != d0 ? 1ull : (unsigned long long)__double_as_longlong(d0);
    unsigned long long bits1 = d1 != d1 ? 1ull : (unsigned long long)__double_as_longlong(d1);
    o[11] = (unsigned)bits0; o[12] = (unsigned)(bits0 >> 32); o[13] = (unsigned)bits1; o[14] = (unsigned)(bits1 >> 32);
    unsigned s = 0;
    for (int i = 0; i < 16; ++i) s = s * 31u + (words[i] ^ bytes[i]);
    o[15] = s;
}}
"""


# Which NaN an operation gives is for the compiler to say where it folds constants: all count as one.
HEAD = """#include <cuda_fp16.h>
static __device__ __forceinline__ unsigned bits_of(float a) { return a != a ? 0x7fffffffu : __float_as_uint(a); }
static __device__ __forceinline__ __half half_of(unsigned a) { return __ushort_as_half((unsigned short)a); }
static __device__ __forceinline__ unsigned half_bits(__half a) {
    return __hisnan(a) ? 0x7fffu : __half_as_ushort(a);
}
static __device__ __forceinline__ __half2 pair_of(unsigned a) { return *reinterpret_cast<__half2 *>(&a); }
static __device__ __forceinline__ unsigned pair_bits(__half2 a) {
    return half_bits(__low2half(a)) | half_bits(__high2half(a)) << 16;
}
"""


def source(first: int, count: int) -> str:
    """A CUDA source with programs `first` to `first + count - 1`."""
    return HEAD + "".join(Program(number).source() for number in range(first, first + count))


if __name__ == "__main__":
    print(source(int(sys.argv[1]), int(sys.argv[2])))
