"""Twins that answer wrongly fail the cases of their operator, and the report says what the error looks like."""

from pathlib import Path

import gpuemu
import pytest
from faulty import values

CONTRACT = Path(__file__).parents[1] / "gpuemu.toml"

TWINS = [
    ("softmax_zero_padding", "softmax", ""),
    ("softmax_unshifted", "softmax", ""),
    ("softmax_dense_rows", "softmax", ""),
    ("layer_norm_padding", "layer_norm", ""),
    ("layer_norm_epsilon", "layer_norm", ""),
    ("gelu_tanh", "gelu", ""),
    ("matmul_last_block", "matmul", ""),
    ("matmul_half_sums", "matmul", ""),
    ("flash_attention_heads", "flash_attention", ""),
    ("flash_attention_scale", "flash_attention", ""),
    ("flash_attention_padding", "flash_attention", ""),
    ("flash_attention_diagonal", "flash_attention", ""),
    ("flash_attention_rescale", "flash_attention", ""),
    ("rope_pairs", "rope", ""),
    ("cumsum_restart", "cumsum", ""),
    ("cross_entropy_ignored", "cross_entropy", ""),
]


@pytest.mark.parametrize("twin, op, diagnosis", TWINS, ids=[twin for twin, _, _ in TWINS])
def test_wrong_answers(twin, op, diagnosis):
    verdict = gpuemu.check(getattr(values, twin), op, contract=CONTRACT, dtypes=["float32"], cases=20)
    assert not verdict
    reports = "\n".join(failure.report for failure in verdict.failures)
    assert diagnosis in reports
