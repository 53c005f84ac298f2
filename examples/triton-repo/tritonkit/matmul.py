"""Matrix products."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=2, num_stages=2),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}, num_warps=4, num_stages=3),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (row[:, None] < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (column[None, :] < n)
        a = tl.load(a_ptr + row[:, None] * stride_am + inner[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * stride_bk + column[None, :] * stride_bn, mask=b_mask, other=0.0)
        sums = tl.dot(a, b, acc=sums, input_precision=PRECISION)
    c_mask = (row[:, None] < m) & (column[None, :] < n)
    c = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c, sums.to(c_ptr.dtype.element_ty), mask=c_mask)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b, with matrices of any strides; float32 without the rounding of tf32."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), PRECISION="ieee")
    return c


@triton.jit
def matmul_split_k_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, k, BLOCK_K * SPLIT):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (row[:, None] < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (column[None, :] < n)
        a = tl.load(a_ptr + row[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + column[None, :], mask=b_mask, other=0.0)
        sums = tl.dot(a, b, acc=sums, input_precision="ieee")
    c_mask = (row[:, None] < m) & (column[None, :] < n)
    tl.atomic_add(c_ptr + row[:, None] * n + column[None, :], sums, mask=c_mask, sem="relaxed")


def matmul_split_k(a: torch.Tensor, b: torch.Tensor, split: int = 4) -> torch.Tensor:
    """a b in float32, the inner dimension shared out among `split` programs that add to the same sums."""
    a, b = a.contiguous(), b.contiguous()
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32), split)
    matmul_split_k_kernel[grid](a, b, c, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, SPLIT=split)
    return c


@triton.jit
def matmul_int8_kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x_mask = (row[:, None] < m) & (inner[None, :] < k)
        weight_mask = (column[None, :] < n) & (inner[:, None] < k)
        x = tl.load(x_ptr + row[:, None] * k + inner[None, :], mask=x_mask, other=0.0)
        weight = tl.load(weight_ptr + column[None, :] * k + inner[:, None], mask=weight_mask, other=0)
        sums = tl.dot(x, weight.to(x.dtype), acc=sums, input_precision="ieee")
    scale = tl.load(scale_ptr + column, mask=column < n, other=0.0).to(tl.float32)
    mask = (row[:, None] < m) & (column[None, :] < n)
    out = out_ptr + row[:, None] * n + column[None, :]
    tl.store(out, (sums * scale[None, :]).to(out_ptr.dtype.element_ty), mask=mask)


def matmul_int8(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x weight^T scale: `weight` is int8 of [out, in], with a scale for every output."""
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul_int8_kernel[grid](x, weight, scale, out, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return out
