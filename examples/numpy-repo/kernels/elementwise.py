"""Operators without a reduction."""

import numpy as np


def relu_(x):
    np.maximum(x, 0, out=x)


def embedding(weight, indices):
    return weight[indices]
