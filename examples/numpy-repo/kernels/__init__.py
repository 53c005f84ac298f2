"""Kernels in NumPy, written as their GPU twins are: in tiles, and with one pass over memory where that is possible."""
