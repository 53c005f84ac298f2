"""Tests of one's own over the same cases; skipped without --gpuemu."""

import gpuemu
import numpy as np
from kernels.softmax import softmax


@gpuemu.cases("softmax", dtypes=["float32"], strategies=["boundary"])
def test_softmax_of_a_copy(case):
    case.check(softmax(np.ascontiguousarray(case["x"])))


def test_rows_sum_to_one():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(softmax(x).sum(axis=-1), 1, rtol=1e-6)
