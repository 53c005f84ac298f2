"""Twins that answer wrongly fail the cases of their operator, and the report leads to why."""

from pathlib import Path

import gpuemu
import pytest
from faulty import values

CONTRACT = Path(__file__).parents[1] / "gpuemu.toml"

# What the report of one of its tests says: the smallest case, or what the error looks like.
TWINS = [
    ("softmax_zero_padding", "softmax", "{B=1,S=1,H=3}"),
    ("softmax_unshifted", "softmax", "every wrong element is NaN where the mirror is finite"),
    ("softmax_dense_rows", "softmax", "the same values pass when every input is contiguous"),
    ("layer_norm_padding", "layer_norm", "every element is 0.9258 times what it should be"),
    ("layer_norm_epsilon", "layer_norm", "times what it should be"),
    ("gelu_tanh", "gelu", "{N=1}"),
    ("matmul_last_block", "matmul", "{M=1,K=33,N=1}"),
    ("matmul_half_sums", "matmul", "every wrong element is rounded to float16 or tf32"),
    ("flash_attention_heads", "flash_attention", "every line along G * R has the right values in another order"),
    ("flash_attention_scale", "flash_attention", "{B=1,G=1,R=1,S=1,T=2,D=2;causal=false}"),
    ("flash_attention_padding", "flash_attention", "{B=1,G=1,R=1,S=1,T=1,D=1;causal=false}"),
    ("flash_attention_diagonal", "flash_attention", "{B=1,G=1,R=1,S=1,T=2,D=1;causal=true}"),
    ("flash_attention_rescale", "flash_attention", "T=17"),
    ("rope_pairs", "rope", "only from index 1 to 2 along 2 * P (of 4)"),
    ("cumsum_restart", "cumsum", "only in the last partial tile along H (from 128 of 129, tile 128)"),
    ("cross_entropy_ignored", "cross_entropy", "{N=1,C=2;ignore_index=-100}"),
]


@pytest.mark.parametrize("twin, op, diagnosis", TWINS, ids=[twin for twin, _, _ in TWINS])
def test_wrong_answers(twin, op, diagnosis):
    verdict = gpuemu.check(getattr(values, twin), op, contract=CONTRACT, dtypes=["float32"], cases=20)
    assert not verdict
    reports = "\n".join(failure.report for failure in verdict.failures)
    assert diagnosis in reports
