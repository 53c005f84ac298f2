"""Attention: with all scores of a query at once, and block by block (flash attention)."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, group, queries, keys,
    DEPTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One query a program; every one of its scores in registers."""
    query, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q_row = ((batch * heads + head) * queries + query).to(tl.int64) * DEPTH
    kv_row = ((batch * heads + head) // group).to(tl.int64) * keys * DEPTH
    depth, key = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_K)
    mask = (key[:, None] < keys) & (depth[None, :] < DEPTH)
    q = tl.load(q_ptr + q_row + depth, mask=depth < DEPTH, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + kv_row + key[:, None] * DEPTH + depth[None, :], mask=mask, other=0.0).to(tl.float32)
    scores = tl.where(key < keys, tl.sum(k * q[None, :], axis=1) * scale, -float("inf"))
    powers = tl.exp(scores - tl.max(scores, axis=0))
    v = tl.load(v_ptr + kv_row + key[:, None] * DEPTH + depth[None, :], mask=mask, other=0.0).to(tl.float32)
    out = tl.sum(v * (powers / tl.sum(powers, axis=0))[:, None], axis=0)
    tl.store(out_ptr + q_row + depth, out, mask=depth < DEPTH)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None) -> torch.Tensor:
    """Attention of [batch, heads, queries, depth] over the keys and values, which may have fewer heads."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batches, heads, queries, depth = q.shape
    keys = k.shape[2]
    out = torch.empty_like(q)
    attention_kernel[(queries, heads, batches)](
        q, k, v, out, depth**-0.5 if scale is None else scale, heads, heads // k.shape[1], queries, keys,
        DEPTH=depth, BLOCK_D=triton.next_power_of_2(depth), BLOCK_K=triton.next_power_of_2(keys),
    )  # fmt: skip
    return out


@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, group, queries, keys,
    CAUSAL: tl.constexpr, DEPTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    q_base = head.to(tl.int64) * queries * DEPTH
    kv_base = (head // group).to(tl.int64) * keys * DEPTH
    query = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    depth = tl.arange(0, BLOCK_D)
    q_mask = (query[:, None] < queries) & (depth[None, :] < DEPTH)
    q = tl.load(q_ptr + q_base + query[:, None] * DEPTH + depth[None, :], mask=q_mask, other=0.0)
    highest = tl.full((BLOCK_Q,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    sums = tl.zeros((BLOCK_Q, BLOCK_D), tl.float32)
    end = tl.minimum(keys, (tl.program_id(0) + 1) * BLOCK_Q) if CAUSAL else keys
    for start in range(0, end, BLOCK_K):
        key = start + tl.arange(0, BLOCK_K)
        kv_mask = (key[:, None] < keys) & (depth[None, :] < DEPTH)
        kv = kv_base + key[:, None] * DEPTH + depth[None, :]
        k = tl.load(k_ptr + kv, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = key[None, :] < keys
        if CAUSAL:
            seen = seen & (key[None, :] <= query[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        v = tl.load(v_ptr + kv, mask=kv_mask, other=0.0)
        sums = tl.dot(powers.to(v.dtype), v, acc=sums * shrink[:, None], input_precision="ieee")
        highest = higher
    out = out_ptr + q_base + query[:, None] * DEPTH + depth[None, :]
    tl.store(out, (sums / total[:, None]).to(out_ptr.dtype.element_ty), mask=q_mask)


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None
) -> torch.Tensor:
    """The same as `attention`, block by block; with `causal`, query i sees keys 0 to i."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batches, heads, queries, depth = q.shape
    out = torch.empty_like(q)
    flash_attention_kernel[(triton.cdiv(queries, 16), batches * heads)](
        q, k, v, out, depth**-0.5 if scale is None else scale, heads, heads // k.shape[1], queries, k.shape[2],
        CAUSAL=causal, DEPTH=depth, BLOCK_D=max(16, triton.next_power_of_2(depth)), BLOCK_Q=16, BLOCK_K=16,
    )  # fmt: skip
    return out
