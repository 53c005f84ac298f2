"""Every kernel against PyTorch, as on a machine with a GPU."""

import math

import pytest
import torch
import torch.nn.functional as F
import tritonkit

DEVICE = "cuda"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows, columns", [(1, 1), (4, 100), (8, 257)])
def test_softmax(rows, columns, dtype):
    x = torch.randn(rows, columns, device=DEVICE, dtype=dtype)
    torch.testing.assert_close(tritonkit.softmax(x), torch.softmax(x.float(), -1).to(dtype))


def test_softmax_of_rows_with_gaps():
    x = torch.randn(5, 64, device=DEVICE)[:, :33]
    torch.testing.assert_close(tritonkit.softmax(x), torch.softmax(x, -1))


@pytest.mark.parametrize("columns", [1, 33, 300])
def test_layer_norm(columns):
    x, weight, bias = (torch.randn(*shape, device=DEVICE) for shape in [(4, columns), (columns,), (columns,)])
    torch.testing.assert_close(
        tritonkit.layer_norm(x, weight, bias), F.layer_norm(x, (columns,), weight, bias), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("columns", [1, 128, 300])
def test_rms_norm(columns):
    x, weight = torch.randn(3, columns, device=DEVICE), torch.randn(columns, device=DEVICE)
    torch.testing.assert_close(tritonkit.rms_norm(x, weight), F.rms_norm(x, (columns,), weight, eps=1e-6))


@pytest.mark.parametrize("count", [1, 256, 1000])
@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_activations(name, count):
    x = torch.randn(count, device=DEVICE)
    torch.testing.assert_close(getattr(tritonkit, name)(x), getattr(F, name)(x))


def test_swiglu():
    gate, up = torch.randn(2, 3, 100, device=DEVICE).unbind()
    torch.testing.assert_close(tritonkit.swiglu(gate, up), F.silu(gate) * up)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (33, 17, 65), (64, 64, 64)])
def test_matmul(m, n, k, dtype):
    a, b = torch.randn(m, k, device=DEVICE, dtype=dtype), torch.randn(k, n, device=DEVICE, dtype=dtype)
    expected = (a.double() @ b.double()).to(dtype)
    torch.testing.assert_close(tritonkit.matmul(a, b), expected)
    torch.testing.assert_close(tritonkit.matmul(a.t().contiguous().t(), b), expected)


@pytest.mark.parametrize("split", [1, 3])
def test_matmul_split_k(split):
    a, b = torch.randn(33, 130, device=DEVICE), torch.randn(130, 20, device=DEVICE)
    torch.testing.assert_close(tritonkit.matmul_split_k(a, b, split), a @ b, rtol=1e-4, atol=1e-4)


def test_matmul_int8():
    x, scale = torch.randn(5, 70, device=DEVICE), torch.rand(40, device=DEVICE) * 0.1
    weight = torch.randint(-128, 128, (40, 70), device=DEVICE, dtype=torch.int8)
    expected = x @ (weight.float() * scale[:, None]).t()
    torch.testing.assert_close(tritonkit.matmul_int8(x, weight, scale), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heads, kv_heads", [(2, 2), (4, 2)])
@pytest.mark.parametrize("queries, keys, depth", [(1, 1, 16), (17, 33, 24)])
def test_attention(heads, kv_heads, queries, keys, depth):
    q = torch.randn(2, heads, queries, depth, device=DEVICE)
    k, v = (torch.randn(2, kv_heads, keys, depth, device=DEVICE) for _ in range(2))
    expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(tritonkit.attention(q, k, v), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(tritonkit.flash_attention(q, k, v), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float16, 2e-3)])
def test_flash_attention_causal(dtype, tolerance):
    q = torch.randn(1, 4, 37, 32, device=DEVICE, dtype=dtype)
    k, v = (torch.randn(1, 2, 37, 32, device=DEVICE, dtype=dtype) for _ in range(2))
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True)
    out = tritonkit.flash_attention(q, k, v, causal=True)
    torch.testing.assert_close(out.float(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("classes", [1, 100, 300])
def test_cross_entropy(classes):
    logits = torch.randn(6, classes, device=DEVICE) * 30
    targets = torch.randint(0, classes, (6,), device=DEVICE)
    targets[2] = -100
    torch.testing.assert_close(
        tritonkit.cross_entropy(logits, targets), F.cross_entropy(logits, targets, reduction="none")
    )


def test_rope():
    x = torch.randn(2, 3, 5, 12, device=DEVICE)
    angles = torch.arange(5, device=DEVICE)[:, None] / 10000 ** (torch.arange(6, device=DEVICE) / 6)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    expected = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
    torch.testing.assert_close(tritonkit.rope(x, cos, sin), expected)


def test_dropout():
    x = torch.ones(20_000, device=DEVICE)
    out = tritonkit.dropout(x, 0.25, seed=7)
    kept = (out != 0).float().mean().item()
    # Twenty thousand draws: five standard deviations.
    assert abs(kept - 0.75) < 5 * math.sqrt(0.25 * 0.75 / 20_000)
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 1 / 0.75))
    assert torch.equal(out, tritonkit.dropout(x, 0.25, seed=7))
    assert not torch.equal(out, tritonkit.dropout(x, 0.25, seed=8))


def test_embedding():
    table, ids = torch.randn(10, 70, device=DEVICE), torch.randint(0, 10, (2, 3), device=DEVICE)
    assert torch.equal(tritonkit.embedding(table, ids), table[ids])


@pytest.mark.parametrize("columns", [1, 128, 300])
def test_cumsum(columns):
    x = torch.randn(3, columns, device=DEVICE)
    torch.testing.assert_close(tritonkit.cumsum(x), x.cumsum(-1), rtol=1e-4, atol=1e-5)
