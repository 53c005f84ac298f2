"""Binds functions to operators of gpuemu.toml. Without gpuemu's plugin this file is not needed."""

import gpuemu
from kernels.softmax import softmax

gpuemu.op("softmax")(softmax)
