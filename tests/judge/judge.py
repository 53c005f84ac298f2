"""The judge: regenerates the tensors of a case from its spec, in Python's standard library alone.

Written from the documentation of gpuemu-harness (modules case::rng, case::values, case::layout), not from its code, so
that the two can disagree. Reads jobs from standard input, one a line, and answers each with one line:

    seed <parent> <name>                            -> the derived seed in hexadecimal
    <spec line> | <dtype> | <shape> | <domain>      -> offset ; strides ; the memory's bytes in hexadecimal

where the spec has the single input x, shape is sizes with commas (empty for rank 0) and domain is one of: none, integer LOW HIGH,
float LOW HIGH, positive, probability, permutation, sorted LOW HIGH, unique LOW HIGH, one_hot, offsets SIZE, or
`sentinel VALUE` before another one.
"""

import hashlib
import math
import re
import struct
import sys

MASK = (1 << 64) - 1
BLOCK = 4096

# name -> bytes, fraction bits, exponent of the smallest normal number, largest finite number, NaN pattern
FLOATS = {
    "float64": (8, 52, -1022, sys.float_info.max, 0x7FF8000000000000),
    "float32": (4, 23, -126, (2 - 2.0**-23) * 2.0**127, 0x7FC00000),
    "float16": (2, 10, -14, 65504.0, 0x7E00),
    "bfloat16": (2, 7, -126, (2 - 2.0**-7) * 2.0**127, 0x7FC0),
    "float8_e4m3fn": (1, 3, -6, 448.0, 0x7F),
    "float8_e5m2": (1, 2, -14, 57344.0, 0x7E),
}
INTEGERS = {f"{sign}int{bits}": (bits // 8, sign == "") for sign in ("", "u") for bits in (8, 16, 32, 64)}


def integer_range(dtype):
    if dtype == "bool":
        return 0, 1
    if dtype in FLOATS:
        return -(2**63), 2**63 - 1
    size, signed = INTEGERS[dtype]
    return (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)


# Streams


def derive(parent, name):
    digest = hashlib.blake2b(parent.to_bytes(8, "little") + name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def splitmix(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Stream:
    """SplitMix64 as a sequence."""

    def __init__(self, seed):
        self.seed, self.count = seed, 0

    def word(self):
        self.count += 1
        return splitmix(self.seed, self.count - 1)


def xorshift128plus(state):
    s1, s0 = state
    s1 ^= (s1 << 23) & MASK
    s1 ^= s0 ^ (s1 >> 17) ^ (s0 >> 26)
    state[:] = [s0, s1]
    return (s1 + s0) & MASK


def block_words(seed, number, count):
    """The first `count` words of a block."""
    block = derive(seed, f"block {number}")
    lanes = [[splitmix(block, 2 * lane), splitmix(block, 2 * lane + 1)] for lane in range(8)]
    return [xorshift128plus(lanes[i % 8]) for i in range(count)]


def words(seed, elements):
    """One word an element."""
    out = []
    for number, start in enumerate(range(0, elements, BLOCK)):
        out += block_words(seed, number, min(BLOCK, elements - start))
    return out


def halves(seed, elements):
    """One half-word an element."""
    out = []
    for number, start in enumerate(range(0, elements, BLOCK)):
        count = min(BLOCK, elements - start)
        for word in block_words(seed, number, (count + 1) // 2):
            out += [word & 0xFFFFFFFF, word >> 32]
        del out[start + count :]
    return out


# Arithmetic


def single(value):
    """The nearest float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


NORMAL_SCALE = float.fromhex("0x1.bb67ae8584caap-16")


class Float32:
    round = staticmethod(single)

    def uniform(self, h):
        return ((h - (1 << 32) if h >> 31 else h) >> 8) * 2.0**-23

    def positive(self, h):
        return ((h >> 8) + 1) * 2.0**-24

    def probability(self, h):
        return ((h >> 8) + (h >> 31)) * 2.0**-24

    def edge(self, h):
        magnitude = ((1 << 23) + ((h >> 8) & ((1 << 23) - 1))) * 2.0**-24
        return -magnitude if h >> 31 else magnitude

    def normal(self, w):
        return single(fields(w) * single(NORMAL_SCALE))

    def part(self, w):
        return w & 0xFFFFFFFF


class Float64:
    round = staticmethod(lambda value: value)

    def uniform(self, w):
        return ((w - (1 << 64) if w >> 63 else w) >> 11) * 2.0**-52

    def positive(self, w):
        return ((w >> 11) + 1) * 2.0**-53

    def probability(self, w):
        return ((w >> 11) + (w >> 63)) * 2.0**-53

    def edge(self, w):
        magnitude = ((1 << 52) + ((w >> 11) & ((1 << 52) - 1))) * 2.0**-53
        return -magnitude if w >> 63 else magnitude

    def normal(self, w):
        return fields(w) * NORMAL_SCALE

    def part(self, w):
        return w


def fields(w):
    return float((w & 0xFFFF) + ((w >> 16) & 0xFFFF) + ((w >> 32) & 0xFFFF) + (w >> 48) - 131070)


def encode(value, dtype):
    """The bit pattern of the number of the dtype nearest to a value of at most its largest magnitude, or of an infinity."""
    size, fraction, least, _, nan = FLOATS[dtype]
    sign = (1 << (8 * size - 1)) if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return nan
    exponent_bits = 8 * size - 1 - fraction
    if math.isinf(value):
        return sign | (((1 << exponent_bits) - 1) << fraction)
    if value == 0:
        return sign
    exponent = max(math.frexp(value)[1] - 1, least)
    # Scaling by a power of two is exact; round() takes ties to even.
    steps = round(math.ldexp(abs(value), fraction - exponent))
    return sign | (((exponent - least) << fraction) + steps)


def decode(bits, dtype):
    size, fraction, least, _, _ = FLOATS[dtype]
    sign = -1.0 if bits >> (8 * size - 1) else 1.0
    bits &= (1 << (8 * size - 1)) - 1
    exponent, steps = bits >> fraction, bits & ((1 << fraction) - 1)
    if exponent:
        steps, exponent = steps + (1 << fraction), exponent - 1
    return sign * math.ldexp(float(steps), exponent + least - fraction)


def ends(low, high, dtype):
    """The least and the greatest number of the dtype within two bounds, by looking at their neighbours."""

    def inside(bound, wanted):
        limit = FLOATS[dtype][3]
        start = encode(min(max(bound, -limit), limit), dtype)
        near = (
            {start, start - 1, start + 1} if start not in (0, 1 << (8 * FLOATS[dtype][0] - 1)) else {start, start + 1}
        )
        # Around zero the neighbours are the smallest numbers of either sign.
        near |= {0, 1, 1 | (1 << (8 * FLOATS[dtype][0] - 1))}
        values = [decode(bits, dtype) for bits in near]
        return wanted(value for value in values if low <= value <= high)

    return inside(low, min), inside(high, max)


def scaled(exponent):
    return math.ldexp(1.0, min(max(exponent, -1074), 1023))


def fit(value, dtype, domain):
    """A value as a bit pattern of the dtype."""
    largest = FLOATS[dtype][3]
    if domain[0] == "none":
        if math.isnan(value) or (math.isinf(value) and dtype != "float8_e4m3fn"):
            return encode(value, dtype)
        return encode(min(max(value, -largest), largest), dtype)
    value = 1.0 if math.isnan(value) else min(max(value, -largest), largest)
    if domain[0] in ("positive", "probability"):
        value = abs(value)
    low, high = domain[3]
    bits = encode(value, dtype)
    rounded = decode(bits, dtype)
    if rounded < low:
        return encode(low, dtype)
    if rounded > high:
        return encode(high, dtype)
    return bits


# Values


def floats(seed, dtype, shape, kind, exponent, domain):
    working = Float64() if dtype == "float64" else Float32()
    total, n = math.prod(shape), shape[-1] if shape else 1
    if domain[0] == "positive":
        domain = domain + (None,) * (3 - len(domain)) + ((2.0 ** FLOATS[dtype][2], FLOATS[dtype][3]),)
    elif domain[0] == "probability":
        domain = ("probability", 0.0, 1.0, (0.0, 1.0))
    elif domain[0] == "float":
        domain = domain[:3] + (ends(domain[1], domain[2], dtype),)
    if kind == "tiny":
        exponent += FLOATS[dtype][2]
    scale = scaled(exponent)

    if kind in ("uniform", "positive", "probability", "edge"):
        drawn = words(seed, total) if dtype == "float64" else halves(seed, total)
        return [fit(getattr(working, kind)(bits) * scale, dtype, domain) for bits in drawn]
    drawn = words(seed, total)
    if kind in ("range", "bounds"):
        low, high = domain[1], domain[2]
        wide = Float64()
        if kind == "range":
            values = (low + (high - low) * wide.probability(w) for w in drawn)
        else:
            values = (high if w >> 63 else low for w in drawn)
        return [fit(value * scale, dtype, domain) for value in values]

    rows, special = derive(seed, "rows"), derive(seed, "special")
    turn = splitmix(special, 0) >> 32
    out = []
    for r in range(total // n if n else 0):
        R = splitmix(rows, r)
        edge_scale = scale if kind != "adversarial" else 1.0
        structure, row_scale = structure_of(kind, r, R, turn), edge_scale
        if kind == "adversarial" and structure == "edge":
            row_scale = scale
        for c in range(n):
            value = element(structure, working, r, c, n, R, drawn[r * n + c])
            out.append(fit(value * row_scale, dtype, domain))
    if kind in ("nan_few", "inf_few") and total:
        for i in range(1, 2 + splitmix(special, 0) % 3):
            S = splitmix(special, i)
            value = math.nan if kind == "nan_few" else (-math.inf if S >> 63 else math.inf)
            out[S % 2**63 % total] = fit(value, dtype, domain)
    return out


FINITE = "normal signed_zeros offset spread constant one_hot ramp equal_maxima alternating positive".split()


def structure_of(kind, r, R, turn):
    if kind == "structured":
        return FINITE[(r + turn) % 10]
    if kind == "neg_inf_rows":
        return ["all_neg_inf", "masked", "normal", "normal"][(r + turn) % 4]
    if kind == "adversarial":
        place = (r + turn) % 12
        if place < 10:
            return FINITE[place]
        if place == 10:
            return "edge"
        if r >= 24:
            return "normal"
        return ["one_nan", "one_neg_inf" if R >> 61 & 1 else "one_inf", "all_neg_inf", "both_inf"][R >> 62]
    return {"tiny": "normal", "nan_few": "normal", "inf_few": "normal"}.get(kind, kind)


def element(structure, working, r, c, n, R, w):
    first, second = R % n, (R >> 32) % n
    normal = working.normal
    if structure in ("zeros", "ones"):
        return 0.0 if structure == "zeros" else 1.0
    if structure == "signed_zeros":
        return -0.0 if w >> 63 else 0.0
    if structure == "constant":
        return normal(R)
    if structure == "one_hot":
        return 1.0 if c == first else 0.0
    if structure == "ramp":
        return ((c + 7 * r) % 257 - 128) / 64
    if structure == "normal":
        return normal(w)
    if structure in ("positive", "edge"):
        return getattr(working, structure)(working.part(w))
    if structure == "shifted":
        return working.round(100 + normal(w))
    if structure == "offset":
        return working.round((-4096 if R >> 63 else 4096) + normal(w))
    if structure == "spread":
        return working.round(1 + normal(w) * 2.0**-10)
    if structure == "alternating":
        magnitude = working.round(1 + working.uniform(working.part(w)) / 16)
        return -magnitude if c % 2 else magnitude
    if structure == "equal_maxima":
        return 4.0 if c in (first, second) or c % 16 == R % 16 else normal(w)
    if structure == "all_neg_inf":
        return -math.inf
    if structure == "masked":
        return -math.inf if c > first else normal(w)
    if structure == "one_nan":
        return math.nan if c == first else normal(w)
    if structure == "one_inf":
        return math.inf if c == first else normal(w)
    if structure == "one_neg_inf":
        return -math.inf if c == first else normal(w)
    if structure == "both_inf":
        return -math.inf if c == second else math.inf if c == first else normal(w)
    raise ValueError(structure)


def between(word, low, high):
    return low + (word * (high - low + 1) >> 64)


def integers(seed, dtype, shape, kind, domain):
    total, n = math.prod(shape), shape[-1] if shape else 1
    sentinel = None
    if domain[0] == "sentinel":
        sentinel, domain = domain[1], domain[2]
    name = domain[0]
    low, high = {
        "integer": lambda: domain[1:3],
        "sorted": lambda: domain[1:3],
        "unique": lambda: domain[1:3],
        "permutation": lambda: (0, n - 1),
        "one_hot": lambda: (0, 1),
        "offsets": lambda: (0, domain[1]),
        "none": lambda: integer_range(dtype),
    }[name]()
    if not total:
        return []
    clamp = lambda value: min(max(value, low), high)
    rows = derive(seed, "rows")
    R = [splitmix(rows, r) for r in range(total // n)]
    cells = [(r, c) for r in range(total // n) for c in range(n)]
    drawn = words(seed, total)
    if kind in ("zeros", "ones"):
        out = [clamp(int(kind == "ones"))] * total
    elif kind == "constant":
        out = [between(R[r], low, high) for r, _ in cells]
    elif kind == "one_hot":
        out = [clamp(int(c == R[r] % n)) for r, c in cells]
    elif kind == "ramp":
        if name == "permutation":
            out = [c for _, c in cells]
        elif name == "unique":
            out = [low + c for _, c in cells]
        elif name == "offsets":
            out = [c * domain[1] // max(n - 1, 1) for _, c in cells]
        else:
            out = [low + (c + 7 * r) % min(high - low + 1, 257) for r, c in cells]
    elif kind == "small":
        a, b = max(low, -100), min(high, 100)
        a, b = (a, b) if a <= b else (low, high)
        out = [between(w, a, b) for w in drawn]
    elif kind in ("full_range", "sorted"):
        out = [between(w, low, high) for w in drawn]
        if kind == "sorted":
            out = [value for r in range(total // n) for value in sorted(out[r * n : r * n + n])]
    elif kind == "extremes":
        picks = [low, high, clamp(low + 1), clamp(high - 1), clamp(0), clamp(1), clamp(-1)]
        out = [picks[w % 8] if w % 8 < 7 else between(w, low, high) for w in drawn]
    else:
        out = []
        for r in range(total // n):
            stream = Stream(R[r])
            if kind == "permutation":
                row = list(range(n))
                for i in range(n - 1, 0, -1):
                    j = between(stream.word(), 0, i)
                    row[i], row[j] = row[j], row[i]
            elif kind == "unique":
                full = list(range(low, high + 1))
                for i in range(n):
                    j = between(stream.word(), i, high - low)
                    full[i], full[j] = full[j], full[i]
                row = full[:n]
            elif kind == "offsets":
                size = domain[1]
                inner = sorted(between(stream.word(), 0, size) for _ in range(n - 2))
                row = ([0] + inner + [size])[-n:]
                if n >= 4 and R[r] >> 63:
                    row[2] = row[1]
            else:
                raise ValueError(kind)
            out += row
    if sentinel is not None and kind not in ("zeros", "ones"):
        marks = words(derive(seed, "sentinel"), total)
        out = [sentinel if mark < 2**61 else value for mark, value in zip(marks, out)]
    return out


# Memory


def place(layout, shape):
    """Strides, offset, elements of memory, and the shape that is filled."""
    rank, total = len(shape), math.prod(shape)
    # Sizes of 0 count as 1 in strides.
    dense = lambda sizes: [math.prod(max(size, 1) for size in sizes[axis + 1 :]) for axis in range(len(sizes))]
    row = (dense(shape), 0, total, shape)
    if layout == "offset":
        return dense(shape), 3, total + 6, shape
    if layout == "row" or not total or not rank:
        return row
    last = shape[-1]
    if layout == "transposed" and rank >= 2 and last >= 2 and shape[-2] >= 2:
        strides = dense(shape[:-2] + [shape[-1], shape[-2]])
        return strides[:-2] + [strides[-1], strides[-2]], 0, total, shape
    if layout == "column" and sum(size >= 2 for size in shape) >= 2:
        return [math.prod(shape[:axis]) for axis in range(rank)], 0, total, shape
    if layout == "padded" and rank >= 2:
        longer = shape[:-1] + [last + 3]
        return dense(longer), 0, math.prod(longer), shape
    if layout == "sliced" and last >= 2:
        longer = shape[:-1] + [2 * last]
        return dense(longer)[:-1] + [2], 0, math.prod(longer), shape
    if layout == "broadcast" and rank >= 2 and shape[0] >= 2:
        return [0] + dense(shape)[1:], 0, total // shape[0], [1] + shape[1:]
    if layout == "reversed" and last >= 2:
        return dense(shape)[:-1] + [-1], last - 1, total, shape
    return row


def poison(dtype):
    if dtype in INTEGERS and INTEGERS[dtype][1]:
        return 1 << (8 * INTEGERS[dtype][0] - 1)
    size = FLOATS[dtype][0] if dtype in FLOATS else 1 if dtype == "bool" else INTEGERS[dtype][0]
    return (1 << (8 * size)) - 1


def tensor(line, dtype, shape, domain):
    found = re.fullmatch(r".*\} x:(\w+) (\w+)(?:@2\^(-?\d+))? seed=([0-9a-f]{16})((?: x\[[\d,]*\]=\S+)*)", line)
    layout, kind, exponent, seed, edits = found.groups()
    seed = derive(int(seed, 16), "x")
    strides, offset, length, filled = place(layout, shape)
    if dtype in FLOATS and domain[0] in ("none", "float", "positive", "probability"):
        patterns = floats(seed, dtype, filled, kind, int(exponent or 0), domain)
        size = FLOATS[dtype][0]
    else:
        numbers = integers(seed, dtype, filled, kind, domain)
        if dtype in FLOATS:
            size = FLOATS[dtype][0]
            patterns = [encode(float(number), dtype) for number in numbers]
        else:
            size = 1 if dtype == "bool" else INTEGERS[dtype][0]
            patterns = [number & ((1 << (8 * size)) - 1) for number in numbers]
    memory = [poison(dtype)] * length
    index = [0] * len(filled)
    for pattern in patterns:
        memory[offset + sum(i * s for i, s in zip(index, strides))] = pattern
        for axis in reversed(range(len(filled))):
            index[axis] += 1
            if index[axis] < filled[axis]:
                break
            index[axis] = 0
    for where, value in re.findall(r" x\[([\d,]*)\]=(\S+)", edits):
        at = offset + sum(int(i) * s for i, s in zip(where.split(",") if where else [], strides))
        memory[at] = encode(float(value), dtype) if dtype in FLOATS else int(float(value)) & ((1 << (8 * size)) - 1)
    data = b"".join(pattern.to_bytes(size, "little") for pattern in memory)
    return f"{offset};{','.join(map(str, strides))};{data.hex()}"


def read_domain(text):
    name, *rest = text.split()
    if name == "sentinel":
        return (name, int(rest[0]), read_domain(" ".join(rest[1:])))
    if name == "float":
        return (name, float(rest[0]), float(rest[1]))
    return (name, *map(int, rest))


def main():
    for job in sys.stdin:
        job = job.rstrip("\n")
        if job.startswith("seed "):
            _, parent, name = job.split(" ", 2)
            print(f"{derive(int(parent), name):016x}")
            continue
        line, dtype, shape, domain = (part.strip() for part in job.split("|"))
        shape = [int(size) for size in shape.split(",")] if shape else []
        print(tensor(line, dtype, shape, read_domain(domain)))


if __name__ == "__main__":
    main()
