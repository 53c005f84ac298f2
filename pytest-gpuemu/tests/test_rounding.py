"""References that round to integers, and answers below the smallest normal number."""

import numpy as np
import pytest
from conftest import Small
from gpuemu import check

CONTRACT = """
[validation]
dtypes = ["float32"]
strategies = ["default", "structured", "boundary"]

[[ops]]
name = "quantise"
reference = "references:quantise"
[ops.schema]
dims = { N = [1, 4], H = [1, 33, 100] }
inputs = { x = ["N", "H"] }
outputs = { q = { dims = ["N", "H"], dtype = "int8" } }

[[ops]]
name = "products"
reference = "references:products"
[ops.schema]
dims = { N = [1, 3], H = [1, 3, 100] }
inputs = { x = ["N", "H"] }
outputs = { out = ["N", "H"] }
"""

REFERENCES = """
import numpy as np

def quantise(x):
    largest = np.abs(x).max(-1, keepdims=True)
    steps = x / np.where(largest == 0, 1, largest / 127)
    return np.clip(np.rint(np.nan_to_num(steps)), -127, 127).astype(np.int8)

def products(x):
    return np.cumprod(x, axis=-1)
"""


def largest_of(x: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(x).max(-1, keepdims=True), np.float32(1e-30))


def by_reciprocal(x: np.ndarray) -> np.ndarray:
    """Falls to the other side of some ties."""
    return np.clip(np.rint(x * (np.float32(127) / largest_of(x))), -127, 127).astype(np.int8)


def half_up(x: np.ndarray) -> np.ndarray:
    """The same ties, all upwards."""
    return np.clip(np.floor(x / (largest_of(x) / np.float32(127)) + np.float32(0.5)), -127, 127).astype(np.int8)


def cut(x: np.ndarray) -> np.ndarray:
    return np.clip(x * (np.float32(127) / largest_of(x)), -127, 127).astype(np.int8)


def one_more(x: np.ndarray) -> np.ndarray:
    return np.clip(by_reciprocal(x).astype(np.int32) + 1, -127, 127).astype(np.int8)


def products(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.cumprod(x, axis=-1, dtype=np.float32)


def products_flushed(x: np.ndarray) -> np.ndarray:
    """As hardware that flushes subnormal numbers."""
    out = np.empty_like(x)
    so_far = np.ones(x.shape[0], np.float32)
    with np.errstate(all="ignore"):
        for column in range(x.shape[1]):
            so_far = so_far * x[:, column]
            so_far = np.where(np.abs(so_far) < np.finfo(np.float32).tiny, np.copysign(0, so_far), so_far)
            out[:, column] = so_far
    return out


def doubled(x: np.ndarray) -> np.ndarray:
    return products(x) * 2


def a_hundredth_more(x: np.ndarray) -> np.ndarray:
    return products(x) * np.float32(1.01)


@pytest.mark.parametrize(
    ("op", "kernel", "right"),
    [
        ("quantise", by_reciprocal, True),
        ("quantise", half_up, True),
        ("quantise", cut, False),
        ("quantise", one_more, False),
        ("products", products, True),
        ("products", products_flushed, True),
        ("products", doubled, False),
        ("products", a_hundredth_more, False),
    ],
)
def test_kernels(small: Small, monkeypatch: pytest.MonkeyPatch, op: str, kernel: object, right: bool) -> None:
    small.write("gpuemu.toml", CONTRACT)
    small.write("references.py", REFERENCES)
    monkeypatch.syspath_prepend(small.path)
    for seed in range(3):
        verdict = check(kernel, op, contract=small.path / "gpuemu.toml", seed=seed)
        assert verdict.passed == right, verdict


def test_a_tolerance_of_an_integer_dtype(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    small.write(
        "gpuemu.toml",
        CONTRACT.replace(
            'reference = "references:quantise"', 'reference = "references:quantise"\ntolerances = { int8 = 1 }'
        ),
    )
    small.write("references.py", REFERENCES)
    monkeypatch.syspath_prepend(small.path)
    assert check(one_more, "quantise", contract=small.path / "gpuemu.toml").passed
