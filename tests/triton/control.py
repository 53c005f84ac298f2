"""Control flow, functions, inline assembly, prints and assertions, warp specialisation, clusters."""

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, cdiv, exactly, i32, integers, reads, updates, wide, writes

SIZE = 1000


@triton.jit
def collatz(x, steps, BLOCK: tl.constexpr):
    """One number a program: how many steps it takes to reach one."""
    value = tl.load(x + tl.program_id(0)).to(tl.int64)
    count = 0
    while value > 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        count += 1
    tl.store(steps + tl.program_id(0), count)


@triton.jit
def steps_to_one(value):
    count = 0
    while value > 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        count += 1
    return count


@triton.jit
def collatz_each(x, steps, BLOCK: tl.constexpr):
    """One number a thread: each takes as many turns as it needs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(steps + at, tl.map_elementwise(steps_to_one, tl.load(x + at)))


@triton.jit
def newton(x, out, BLOCK: tl.constexpr):
    """A loop that ends when all lanes are done."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    root = value
    turns = 0
    while (tl.max(tl.abs(root * root - value), axis=0) > 1e-3) & (turns < 50):
        root = 0.5 * (root + value / root)
        turns += 1
    tl.store(out + at, root)


@triton.jit
def pipelined_sum(x, y, out, rows, BLOCK: tl.constexpr):
    """A loop whose loads are copied ahead of their use, though no dot reads them."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(0, rows, num_stages=3):
        index = tl.load(y + row)
        total += tl.load(x + index * BLOCK * 2 + at)
    tl.store(out + at, total)


@triton.jit
def unrolled(x, out, size, BLOCK: tl.constexpr, TERMS: tl.constexpr):
    """A polynomial by Horner's rule, unrolled when compiling."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(x + at, mask=mask, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for term in tl.static_range(TERMS):
        total = total * value + 1.0 / (term + 1)
    tl.store(out + at, total, mask=mask)


@triton.jit(noinline=True)
def series(x, terms):
    total = 0.0
    power = 1.0
    for term in range(terms):
        power = power * x
        total += power / (term + 1)
    return total


@triton.jit
def called(x, out, terms):
    """Calls of a function that stays one, for one number a program."""
    at = tl.program_id(0)
    value = tl.load(x + at)
    tl.store(out + at, series(value, terms) - series(-value, 2))


@triton.jit
def assembly(x, y, out, carry, size, BLOCK: tl.constexpr):
    """Four bytes at a time, two results, and braces with registers of their own."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=0)
    b = tl.load(y + at, mask=mask, other=0)
    shifted = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, 5;", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1
    )
    low, high = tl.inline_asm_elementwise(
        asm="""
        {
            .reg .u64 wide;
            .reg .pred some;
            mul.wide.u32 wide, $2, $3;
            setp.ne.u32 some, $3, 0;
            mov.b64 {$0, $1}, wide;
            @!some mov.u32 $1, 77;
        }
        """,
        constraints="=r,=r,r,r",
        args=[a, b],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    tl.store(out + at, shifted ^ low, mask=mask)
    tl.store(carry + at, high, mask=mask)


@triton.jit
def assembly_bytes(x, y, out, BLOCK: tl.constexpr):
    """Sums of four bytes in one register, none of which carries into the next."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 low, other, top;
            and.b32 low, $1, 0x7F7F7F7F;
            and.b32 other, $2, 0x7F7F7F7F;
            add.u32 low, low, other;
            lop3.b32 top, $1, $2, 0x80808080, 0x28;
            xor.b32 $0, low, top;
        }
        """,
        "=r,r,r",
        [tl.load(x + at), tl.load(y + at)],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(out + at, total)


@triton.jit
def prints(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.device_print("value", values)
    if tl.program_id(0) == 0:
        tl.device_print("sum ", tl.sum(values, axis=0))
    tl.store(out + at, values + 1)


@triton.jit
def asserts(x, out, size, BLOCK: tl.constexpr):
    """Assertions that hold."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    values = tl.load(x + at, mask=mask, other=0)
    tl.device_assert(values < 1000, "a value of 1000 or more")
    tl.device_assert(tl.max(values, axis=0) >= -100, "none of at least -100", mask=tl.program_id(0) < 2)
    tl.store(out + at, values * 2, mask=mask)


@triton.jit
def three_axes(out, GRID_X: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.static_assert(GRID_X == 3)
    tl.store(out + at, x + 10 * y + 100 * z + 1000 * tl.num_programs(2))


@triton.jit
def early_exit(x, out, counts, size, BLOCK: tl.constexpr):
    """Programs with nothing to do return at once."""
    start = tl.program_id(0) * BLOCK
    limit = tl.load(counts)
    if start >= limit:
        return
    at = start + tl.arange(0, BLOCK)
    mask = at < tl.minimum(limit, size)
    tl.store(out + at, tl.load(x + at, mask=mask), mask=mask)


@triton.jit
def grouped_tiles(out, m, n, GROUP: tl.constexpr):
    """The order of tiles that shares operands in cache; each tile gets its program's number."""
    program = tl.program_id(0)
    row, column = tl.swizzle2d(program // n, program % n, m, n, GROUP)
    tl.store(out + row * n + column, program)


@triton.jit
def specialised(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Some warps copy, some multiply."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    target = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in tl.range(tl.cdiv(k, BLOCK_K), num_stages=3, warp_specialize=True):
        total = tl.dot(left.load([row, step * BLOCK_K]), right.load([column, step * BLOCK_K]).T, total)
    target.store([row, column], total.to(tl.float16))


@triton.jit
def clustered(x, out, BLOCK: tl.constexpr):
    """A program spread over two blocks of a cluster."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(out + at, values / tl.sum(values, axis=0))


@triton.jit
def game_of_life(x, out, height, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < width
    count = tl.zeros((BLOCK,), tl.int32)
    for down in tl.static_range(-1, 2):
        for right in tl.static_range(-1, 2):
            y = (row + down + height) % height
            place = (at + right + width) % width
            count += tl.load(x + y * width + place, mask=mask, other=0).to(tl.int32)
    alive = tl.load(x + row * width + at, mask=mask, other=0)
    count -= alive.to(tl.int32)
    tl.store(out + row * width + at, ((count == 3) | ((count == 2) & (alive == 1))).to(tl.int8), mask=mask)


@triton.jit
def mandelbrot(out, width, height, BLOCK: tl.constexpr):
    """Lanes leave the loop at different turns, by masks."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = at.to(tl.float64) / width * 3.0 - 2.0
    b = tl.zeros((BLOCK,), tl.float64) + (row.to(tl.float64) / height * 2.0 - 1.0)
    x = tl.zeros((BLOCK,), tl.float64)
    y = tl.zeros((BLOCK,), tl.float64)
    count = tl.zeros((BLOCK,), tl.int32)
    for _ in range(30):
        inside = x * x + y * y <= 4.0
        count += inside.to(tl.int32)
        real = x * x - y * y + a
        y = tl.where(inside, 2.0 * x * y + b, y)
        x = tl.where(inside, real, x)
    tl.store(out + row * width + at, count, mask=at < width)


def collatz_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    steps = []
    for value in t["x"].tolist():
        count = 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        steps.append(count)
    return {"steps": np.array(steps)}


def polynomial(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = wide(t["x"])
    return {"out": np.sum([x ** (5 - term) / (term + 1) for term in range(6)], axis=0)}


def series_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = wide(t["x"])
    return {"out": np.sum([x**term / term for term in range(1, 8)], axis=0) - (-x + x * x / 2)}


def assembled(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = (t[name].view(np.uint32).astype(np.uint64) for name in "xy")
    shifted = (b << np.uint64(5) | a >> np.uint64(27)) & np.uint64(0xFFFFFFFF)
    product = a * b
    high = np.where(b == 0, np.uint64(77), product >> np.uint64(32))
    low = product & np.uint64(0xFFFFFFFF)
    return {"out": (shifted ^ low).astype(np.uint32).view(np.int32), "carry": high.astype(np.uint32).view(np.int32)}


def axes(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    z, y, x = np.indices((2, 4, 3))
    return {"out": x + 10 * y + 100 * z + 2000}


def limited(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = np.zeros(SIZE, np.float32)
    out[:300] = t["x"][:300]
    return {"out": out}


def grouped(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Groups of two rows, column after column inside a group; the last group has one row."""
    out = np.zeros((5, 4), np.int64)
    number = 0
    for first in range(0, 5, 2):
        rows = range(first, min(first + 2, 5))
        for column in range(4):
            for row in rows:
                out[row, column] = number
                number += 1
    return {"out": out}


def life(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = t["x"].astype(int)
    around = [
        np.roll(x, (down, right), (0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)
    ]
    count = np.sum(around, axis=0)
    return {"out": (count == 3) | ((count == 2) & (x == 1))}


def escape_counts(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a = np.arange(60) / 60 * 3.0 - 2.0
    b = (np.arange(20) / 20 * 2.0 - 1.0)[:, None]
    c = a + 1j * b
    z = np.zeros_like(c)
    count = np.zeros(c.shape, int)
    for _ in range(30):
        inside = z.real * z.real + z.imag * z.imag <= 4.0
        count += inside
        z = np.where(inside, z * z + c, z)
    return {"out": count}


KERNELS = [
    Kernel(
        collatz,
        grid=(50,),
        arguments={"x": reads("int32", 50, values=integers(1, 1000)), "steps": writes("int32", 50)},
        constants={"BLOCK": 1},
        reference=collatz_of,
        num_warps=1,
    ),
    Kernel(
        collatz_each,
        grid=(2,),
        arguments={"x": reads("int32", 256, values=integers(1, 1000)), "steps": writes("int32", 256)},
        constants={"BLOCK": 128},
        reference=collatz_of,
    ),
    Kernel(
        newton,
        grid=(4,),
        arguments={"x": reads("float32", 1024, values=lambda s, n: s.uniform(1, 9, n)), "out": writes("float32", 1024)},
        constants={"BLOCK": 256},
        reference=lambda t: {"out": np.sqrt(wide(t["x"]))},
        tolerance=Tolerance(5e-4),
    ),
    Kernel(
        pipelined_sum,
        grid=(2,),
        arguments={
            "x": reads("float32", 12, 512),
            "y": reads("int32", 20, values=integers(0, 11)),
            "out": writes("float32", 512),
            "rows": i32(20),
        },
        constants={"BLOCK": 256},
        reference=lambda t: {"out": wide(t["x"])[t["y"]].sum(axis=0)},
        tolerance=Tolerance(1e-5),
    ),
    Kernel(
        unrolled,
        grid=(cdiv(SIZE, 256),),
        arguments={"x": reads("float32", SIZE), "out": writes("float32", SIZE), "size": i32(SIZE)},
        constants={"BLOCK": 256, "TERMS": 6},
        reference=polynomial,
        tolerance=Tolerance(1e-4, 1e-5),
    ),
    Kernel(
        called,
        grid=(40,),
        arguments={
            "x": reads("float32", 40, values=lambda s, n: s.uniform(-1, 1, n)),
            "out": writes("float32", 40),
            "terms": i32(7),
        },
        reference=series_of,
        tolerance=Tolerance(1e-5),
    ),
    Kernel(
        assembly,
        grid=(cdiv(SIZE, 256),),
        arguments={
            "x": reads("int32", SIZE, values=integers(-(2**31), 2**31 - 1)),
            "y": reads("int32", SIZE, values=integers(-2, 2)),
            "out": writes("int32", SIZE),
            "carry": writes("int32", SIZE),
            "size": i32(SIZE),
        },
        constants={"BLOCK": 256},
        reference=assembled,
    ),
    Kernel(
        assembly_bytes,
        grid=(2,),
        arguments={
            "x": reads("uint8", 1024, values=integers(0, 255)),
            "y": reads("uint8", 1024, values=integers(0, 255)),
            "out": writes("uint8", 1024),
        },
        constants={"BLOCK": 512},
        reference=lambda t: {"out": t["x"] + t["y"]},
    ),
    Kernel(
        prints,
        grid=(1,),
        arguments={"x": reads("int32", 32, values=exactly(range(0, 320, 10))), "out": writes("int32", 32)},
        constants={"BLOCK": 32},
        reference=lambda t: {"out": t["x"] + 1},
        num_warps=1,
        prints=(
            *(f"pid (0, 0, 0) idx ({place:2}) value: {10 * place}" for place in range(32)),
            *(["pid (0, 0, 0) idx () sum: 4960"] * 32),
        ),
    ),
    Kernel(
        asserts,
        grid=(cdiv(SIZE, 256),),
        arguments={"x": reads("int32", SIZE), "out": writes("int32", SIZE), "size": i32(SIZE)},
        constants={"BLOCK": 256},
        reference=lambda t: {"out": t["x"] * 2},
        options={"debug": True},
    ),
    Kernel(
        three_axes,
        grid=(3, 4, 2),
        arguments={"out": writes("int32", 2, 4, 3)},
        constants={"GRID_X": 3},
        reference=axes,
    ),
    Kernel(
        early_exit,
        grid=(cdiv(SIZE, 256),),
        arguments={
            "x": reads("float32", SIZE),
            "out": updates("float32", SIZE),
            "counts": reads("int32", 1, values=exactly([300])),
            "size": i32(SIZE),
        },
        constants={"BLOCK": 256},
        reference=limited,
    ),
    Kernel(
        grouped_tiles,
        grid=(20,),
        arguments={"out": writes("int32", 5, 4), "m": i32(5), "n": i32(4)},
        constants={"GROUP": 2},
        reference=grouped,
    ),
    Kernel(
        specialised,
        grid=(2, 2),
        arguments={
            "a": reads("float16", 256, 256),
            "b": reads("float16", 256, 256),
            "c": writes("float16", 256, 256),
            "m": i32(256),
            "n": i32(256),
            "k": i32(256),
        },
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        reference=lambda t: {"c": wide(t["a"]) @ wide(t["b"]).T},
        tolerance=Tolerance(2e-2, 2e-3),
        first_target=90,
        why_not="warps are specialised from sm_90",
    ),
    Kernel(
        clustered,
        grid=(3,),
        arguments={
            "x": reads("float32", 3, 1024, values=lambda s, n: s.uniform(0.5, 1, n)),
            "out": writes("float32", 3, 1024),
        },
        constants={"BLOCK": 1024},
        reference=lambda t: {"out": wide(t["x"]) / wide(t["x"]).sum(axis=1, keepdims=True)},
        tolerance=Tolerance(0.0, 1e-5),
        options={"num_ctas": 2},
        first_target=90,
        why_not="clusters exist from sm_90",
    ),
    Kernel(
        game_of_life,
        grid=(30,),
        arguments={
            "x": reads("int8", 30, 50, values=integers(0, 1)),
            "out": writes("int8", 30, 50),
            "height": i32(30),
            "width": i32(50),
        },
        constants={"BLOCK": 64},
        reference=life,
        num_warps=2,
    ),
    Kernel(
        mandelbrot,
        grid=(20,),
        arguments={"out": writes("int32", 20, 60), "width": i32(60), "height": i32(20)},
        constants={"BLOCK": 64},
        reference=escape_counts,
        num_warps=2,
    ),
]
