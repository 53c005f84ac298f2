"""A matrix product in tiles, accumulated in float32, written into its output."""

import numpy as np

TILE = 32


def matmul(a, b, out):
    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    for row in range(0, rows, TILE):
        for column in range(0, columns, TILE):
            tile = np.zeros((min(TILE, rows - row), min(TILE, columns - column)), np.float32)
            for k in range(0, inner, TILE):
                left = a[row : row + TILE, k : k + TILE].astype(np.float32)
                tile += left @ b[k : k + TILE, column : column + TILE].astype(np.float32)
            out[row : row + TILE, column : column + TILE] = tile
