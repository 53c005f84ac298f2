"""Attention: causal, grouped heads, sliding windows, one query, and the backward pass's shape of loop."""

from typing import Any

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, cdiv, exactly, f32, i32, normal, reads, wide, writes


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    scale,
    queries,
    keys,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """`q` is heads by queries by WIDTH; GROUP query heads share one head of `k` and `v`."""
    head = tl.program_id(1)
    row = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    lane = tl.arange(0, WIDTH)
    query = q + head * queries * WIDTH + row[:, None] * WIDTH + lane[None, :]
    shared = head // GROUP * keys * WIDTH
    left = tl.load(query, mask=row[:, None] < queries, other=0.0)
    top = tl.full((BLOCK_Q,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    sums = tl.zeros((BLOCK_Q, WIDTH), tl.float32)
    end = tl.minimum(keys, (tl.program_id(0) + 1) * BLOCK_Q) if CAUSAL else keys
    for start in range(0, end, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        at = shared + place[:, None] * WIDTH + lane[None, :]
        mask = place[:, None] < keys
        scores = tl.dot(left, tl.trans(tl.load(k + at, mask=mask, other=0.0))) * (scale * 1.4426950408889634)
        seen = place[None, :] < keys
        if CAUSAL:
            seen = seen & (place[None, :] <= row[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        powers = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        values = tl.load(v + at, mask=mask, other=0.0)
        sums = tl.dot(powers.to(values.dtype), values, sums * shrink[:, None])
        top = higher
    target = out + head * queries * WIDTH + row[:, None] * WIDTH + lane[None, :]
    tl.store(target, (sums / total[:, None]).to(out.dtype.element_ty), mask=row[:, None] < queries)


@triton.jit
def attention_window(q, k, v, out, scale, keys, WINDOW: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Every query sees itself and the WINDOW - 1 keys before it."""
    block = tl.program_id(0)
    row = block * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)
    left = tl.load(q + row[:, None] * WIDTH + lane[None, :])
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK, WIDTH), tl.float32)
    first = tl.maximum(0, (block * BLOCK - WINDOW + 1) // BLOCK * BLOCK)
    for start in tl.range(first, (block + 1) * BLOCK, BLOCK, num_stages=2):
        place = start + tl.arange(0, BLOCK)
        at = place[:, None] * WIDTH + lane[None, :]
        scores = tl.dot(left, tl.load(k + at).T) * scale
        distance = row[:, None] - place[None, :]
        seen = (distance >= 0) & (distance < WINDOW)
        scores = tl.where(seen, scores, -1e30)
        higher = tl.maximum(top, tl.max(scores, axis=1))
        powers = tl.where(seen, tl.exp(scores - higher[:, None]), 0.0)
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        sums = tl.dot(powers.to(tl.bfloat16), tl.load(v + at), sums * shrink[:, None])
        top = higher
    tl.store(out + row[:, None] * WIDTH + lane[None, :], sums / total[:, None])


@triton.jit
def attention_decode(q, k, v, pages, lengths, out, scale, PAGES: tl.constexpr, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    """One query a sequence; keys and values lie in pages that a table names; no tensor cores."""
    sequence = tl.program_id(0)
    length = tl.load(lengths + sequence)
    lane = tl.arange(0, WIDTH)
    query = tl.load(q + sequence * WIDTH + lane).to(tl.float32)
    top = -float("inf")
    total = 0.0
    sums = tl.zeros((WIDTH,), tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        base = tl.load(pages + sequence * PAGES + page).to(tl.int64) * PAGE
        place = tl.arange(0, PAGE)
        mask = page * PAGE + place < length
        at = (base + place)[:, None] * WIDTH + lane[None, :]
        keys = tl.load(k + at, mask=mask[:, None], other=0.0).to(tl.float32)
        scores = tl.where(mask, tl.sum(keys * query[None, :], axis=1) * scale, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=0))
        powers = tl.exp(scores - higher)
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(powers, axis=0)
        values = tl.load(v + at, mask=mask[:, None], other=0.0).to(tl.float32)
        sums = sums * shrink + tl.sum(powers[:, None] * values, axis=0)
        top = higher
    tl.store(out + sequence * WIDTH + lane, sums / total)


@triton.jit
def attention_backward(q, k, v, d_out, lse, delta, d_k, d_v, scale, queries, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """The gradients of keys and values, from the forward pass's logarithms of sums; a block of keys a program."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)
    at = place[:, None] * WIDTH + lane[None, :]
    keys = tl.load(k + at)
    values = tl.load(v + at)
    key_sums = tl.zeros((BLOCK, WIDTH), tl.float32)
    value_sums = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, queries, BLOCK):
        row = start + tl.arange(0, BLOCK)
        query = tl.load(q + row[:, None] * WIDTH + lane[None, :])
        gradient = tl.load(d_out + row[:, None] * WIDTH + lane[None, :])
        powers = tl.exp(tl.dot(keys, tl.trans(query)) * scale - tl.load(lse + row)[None, :])
        value_sums = tl.dot(powers.to(tl.float16), gradient, value_sums)
        inner = tl.dot(values, tl.trans(gradient)) - tl.load(delta + row)[None, :]
        key_sums = tl.dot((powers * inner).to(tl.float16), query, key_sums)
    tl.store(d_k + at, (key_sums * scale).to(tl.float16))
    tl.store(d_v + at, value_sums.to(tl.float16))


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    scores = np.where(seen, wide(q) @ wide(k).swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers @ wide(v) / powers.sum(axis=-1, keepdims=True)


def grouped(t: dict[str, np.ndarray], causal: bool) -> dict[str, np.ndarray]:
    group = t["q"].shape[0] // t["k"].shape[0]
    k, v = (np.repeat(t[name], group, axis=0) for name in "kv")
    seen = np.ones((t["q"].shape[1], k.shape[1]), bool)
    return {"out": attend(t["q"], k, v, np.tril(seen) if causal else seen)}


def windowed(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    distance = np.arange(128)[:, None] - np.arange(128)[None, :]
    return {"out": attend(t["q"], t["k"], t["v"], (distance >= 0) & (distance < 48))}


def paged(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = []
    for query, pages, length in zip(t["q"], t["pages"], t["lengths"], strict=True):
        k, v = (t[name][pages].reshape(-1, 64)[:length] for name in "kv")
        out.append(attend(query[None, :], k, v, np.ones((1, length), bool))[0])
    return {"out": np.stack(out)}


def backward(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    q, k, v, d_out = (wide(t[name]) for name in ("q", "k", "v", "d_out"))
    powers = np.exp(q @ k.T * 0.125 - wide(t["lse"])[:, None])
    inner = powers * (d_out @ v.T - wide(t["delta"])[:, None])
    return {"d_k": inner.T @ q * 0.125, "d_v": powers.T @ d_out}


def forward(
    name: str, dtype: str, heads: tuple[int, int], size: tuple[int, int, int], causal: bool, **more: Any
) -> Kernel:
    """Attention of (query heads, key heads) and (queries, keys, width)."""
    queries, keys, width = size
    return Kernel(
        attention,
        name=name,
        grid=(cdiv(queries, 64), heads[0]),
        arguments={
            "q": reads(dtype, heads[0], queries, width),
            "k": reads(dtype, heads[1], keys, width),
            "v": reads(dtype, heads[1], keys, width),
            "out": writes(dtype, heads[0], queries, width),
            "scale": f32(width**-0.5),
            "queries": i32(queries),
            "keys": i32(keys),
        },
        constants={"GROUP": heads[0] // heads[1], "CAUSAL": causal, "WIDTH": width, "BLOCK_Q": 64, "BLOCK_K": 32},
        reference=lambda t: grouped(t, causal),
        tolerance=Tolerance(1e-2 if dtype == "bfloat16" else 2e-3, 1e-2),
        **more,
    )


KERNELS = [
    forward("attention", "float16", (2, 2), (128, 128, 64), causal=False),
    forward("attention_causal", "float16", (2, 2), (128, 128, 64), causal=True, num_stages=2),
    forward("attention_grouped", "bfloat16", (4, 2), (70, 90, 32), causal=False, num_warps=8),
    Kernel(
        attention_window,
        grid=(4,),
        arguments={
            "q": reads("bfloat16", 128, 64),
            "k": reads("bfloat16", 128, 64),
            "v": reads("bfloat16", 128, 64),
            "out": writes("float32", 128, 64),
            "scale": f32(0.125),
            "keys": i32(128),
        },
        constants={"WINDOW": 48, "WIDTH": 64, "BLOCK": 32},
        reference=windowed,
        tolerance=Tolerance(1e-2),
    ),
    Kernel(
        attention_decode,
        grid=(3,),
        arguments={
            "q": reads("float16", 3, 64),
            "k": reads("float16", 12, 16, 64),
            "v": reads("float16", 12, 16, 64),
            "pages": reads("int32", 3, 4, values=lambda stream, shape: stream.permutation(12).reshape(shape)),
            "lengths": reads("int32", 3, values=exactly([64, 1, 37])),
            "out": writes("float32", 3, 64),
            "scale": f32(0.125),
        },
        constants={"PAGES": 4, "PAGE": 16, "WIDTH": 64},
        reference=paged,
        tolerance=Tolerance(1e-4),
    ),
    Kernel(
        attention_backward,
        grid=(2,),
        arguments={
            "q": reads("float16", 128, 64),
            "k": reads("float16", 64, 64),
            "v": reads("float16", 64, 64),
            "d_out": reads("float16", 128, 64),
            # Any will do here: of 64 keys with unit scores the logarithm is about 4.7.
            "lse": reads("float32", 128, values=normal(0.1, 4.7)),
            "delta": reads("float32", 128),
            "d_k": writes("float16", 64, 64),
            "d_v": writes("float16", 64, 64),
            "scale": f32(0.125),
            "queries": i32(128),
        },
        constants={"WIDTH": 64, "BLOCK": 32},
        reference=backward,
        tolerance=Tolerance(2e-2, 5e-3),
    ),
]
