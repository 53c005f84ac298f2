"""Kernels that answer wrongly."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_zero_padding_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)  # fault: 0 counts in the sum
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=mask)


def softmax_zero_padding(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    softmax_zero_padding_kernel[(x.numel() // columns,)](x, out, columns, BLOCK=block)
    return out


@triton.jit
def softmax_unshifted_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(x)  # fault: overflows above 88
    tl.store(out_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=mask)


def softmax_unshifted(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    softmax_unshifted_kernel[(x.numel() // columns,)](x, out, columns, BLOCK=block)
    return out


@triton.jit
def softmax_dense_rows_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=-float("inf"))  # fault: rows lie further apart
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=mask)


def softmax_dense_rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, columns = x.reshape(-1, x.shape[-1]).shape
    softmax_dense_rows_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr, MISTAKE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    if MISTAKE == "padding":
        centred = x - mean  # fault: the padding is -mean now
    else:
        centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    if MISTAKE == "epsilon":
        scale = 1.0 / (tl.sqrt(variance) + eps)  # fault: outside of the root
    else:
        scale = 1.0 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * columns + column, centred * scale * weight + bias, mask=mask)


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float, mistake: str) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(x.numel() // columns,)](x, weight, bias, out, columns, eps, BLOCK=block, MISTAKE=mistake)
    return out


def layer_norm_padding(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return _layer_norm(x, weight, bias, eps, "padding")


def layer_norm_epsilon(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return _layer_norm(x, weight, bias, eps, "epsilon")


@triton.jit
def gelu_tanh_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < count).to(tl.float32)
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    out = x * tl.sigmoid(2.0 * inner)  # fault: the approximation, where the exact function is promised
    tl.store(out_ptr + place, out, mask=place < count)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    gelu_tanh_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


@triton.jit
def matmul_last_block_kernel(a_ptr, b_ptr, c_ptr, m, n, k, MISTAKE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a_mask = (row[:, None] < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (column[None, :] < n)
        a = tl.load(a_ptr + row[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + column[None, :], mask=b_mask, other=0.0)
        if MISTAKE == "overwrites":
            sums = tl.dot(a, b, input_precision="ieee")  # fault: acc= is missing
        else:
            sums = (sums + tl.dot(a, b, input_precision="ieee")).to(tl.float16).to(tl.float32)  # fault: half sums
    mask = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c_ptr + row[:, None] * n + column[None, :], sums.to(c_ptr.dtype.element_ty), mask=mask)


def _matmul(a: torch.Tensor, b: torch.Tensor, mistake: str) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul_last_block_kernel[grid](a, b, c, m, n, k, MISTAKE=mistake, BLOCK=32)
    return c


def matmul_last_block(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _matmul(a, b, "overwrites")


def matmul_half_sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _matmul(a, b, "half")


@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, group, queries, keys, MISTAKE: tl.constexpr,
    CAUSAL: tl.constexpr, DEPTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    q_base = head * queries * DEPTH
    shared = head // group
    if MISTAKE == "heads":
        shared = head // heads * (heads // group) + head % (heads // group)  # fault: neighbours share, not every other
    kv_base = shared * keys * DEPTH
    query = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    depth = tl.arange(0, BLOCK_D)
    q_mask = (query[:, None] < queries) & (depth[None, :] < DEPTH)
    q = tl.load(q_ptr + q_base + query[:, None] * DEPTH + depth[None, :], mask=q_mask, other=0.0)
    if MISTAKE == "scale":
        scale = 1.0  # fault: scores are not divided by the root of the depth
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
        if MISTAKE == "padding":
            seen = key[None, :] >= 0  # fault: keys past the end count, with a score of 0
        if CAUSAL:
            if MISTAKE == "diagonal":
                seen = seen & (key[None, :] <= query[:, None] + 1)  # fault: one key of the future
            else:
                seen = seen & (key[None, :] <= query[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        v = tl.load(v_ptr + kv, mask=kv_mask, other=0.0)
        if MISTAKE != "rescale":  # fault: sums of earlier blocks stand on another maximum
            sums = sums * shrink[:, None]
        sums = tl.dot(powers.to(v.dtype), v, acc=sums, input_precision="ieee")
        highest = higher
    out = out_ptr + q_base + query[:, None] * DEPTH + depth[None, :]
    tl.store(out, (sums / total[:, None]).to(out_ptr.dtype.element_ty), mask=q_mask)


def _flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float | None, mistake: str
) -> torch.Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batches, heads, queries, depth = q.shape
    out = torch.empty_like(q)
    flash_attention_kernel[(triton.cdiv(queries, 16), batches * heads)](
        q, k, v, out, depth**-0.5 if scale is None else scale, heads, heads // k.shape[1], queries, k.shape[2], mistake,
        CAUSAL=causal, DEPTH=depth, BLOCK_D=max(16, triton.next_power_of_2(depth)), BLOCK_Q=16, BLOCK_K=16,
    )  # fmt: skip
    return out


def flash_attention_heads(q, k, v, causal=False, scale=None):
    return _flash_attention(q, k, v, causal, scale, "heads")


def flash_attention_scale(q, k, v, causal=False, scale=None):
    return _flash_attention(q, k, v, causal, scale, "scale")


def flash_attention_padding(q, k, v, causal=False, scale=None):
    return _flash_attention(q, k, v, causal, scale, "padding")


def flash_attention_diagonal(q, k, v, causal=False, scale=None):
    return _flash_attention(q, k, v, causal, scale, "diagonal")


def flash_attention_rescale(q, k, v, causal=False, scale=None):
    return _flash_attention(q, k, v, causal, scale, "rescale")


@triton.jit
def rope_pairs_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, positions, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    mask = lane < HALF
    angle = (row % positions) * HALF + lane
    cos = tl.load(cos_ptr + angle, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=mask).to(tl.float32)
    pair = row * 2 * HALF + 2 * lane  # fault: neighbours, where halves are pairs
    first = tl.load(x_ptr + pair, mask=mask).to(tl.float32)
    second = tl.load(x_ptr + pair + 1, mask=mask).to(tl.float32)
    tl.store(out_ptr + pair, first * cos - second * sin, mask=mask)
    tl.store(out_ptr + pair + 1, second * cos + first * sin, mask=mask)


def rope_pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    positions, depth = x.shape[-2:]
    block = triton.next_power_of_2(depth // 2)
    rope_pairs_kernel[(x.numel() // depth,)](x, cos, sin, out, positions, HALF=depth // 2, BLOCK=block)
    return out


@triton.jit
def cumsum_restart_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
        sums = tl.cumsum(x, axis=0)  # fault: the sum of the blocks before is dropped
        tl.store(out_ptr + row * columns + column, sums, mask=column < columns)


def cumsum_restart(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    cumsum_restart_kernel[(x.numel() // columns,)](x, out, columns, BLOCK=128)
    return out


@triton.jit
def cross_entropy_ignored_kernel(logits_ptr, targets_ptr, out_ptr, classes, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    target = tl.load(targets_ptr + row)
    x = tl.load(logits_ptr + row * classes + column, mask=column < classes, other=-float("inf")).to(tl.float32)
    highest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - highest), axis=0)
    chosen = tl.load(logits_ptr + row * classes + tl.maximum(target, 0)).to(tl.float32)
    tl.store(out_ptr + row, tl.log(total) + highest - chosen)  # fault: rows without a target count


def cross_entropy_ignored(logits: torch.Tensor, targets: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    logits = logits.contiguous()
    rows, classes = logits.shape
    out = torch.empty((rows,), dtype=logits.dtype, device=logits.device)
    block = triton.next_power_of_2(classes)
    cross_entropy_ignored_kernel[(rows,)](logits, targets, out, classes, BLOCK=block)
    return out
