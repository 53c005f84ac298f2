"""out[n, f, y, x] = bias[f] + sum_{c, i, j} weight[f, c, i, j] * padded[n, c, y * stride + i * dilation, x * stride + ...]

x is [N, C, H, W], weight [F, C / groups, KH, KW]; filter f sees the channels of group f // (F / groups). Nothing is
flipped, and the padding is zeros.
"""

import numpy as np


def reference(x, weight, bias=None, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1):
    batches, _, height, width = x.shape
    filters, channels, rows, columns = weight.shape
    out_height = (height + 2 * padding - dilation * (rows - 1) - 1) // stride + 1
    out_width = (width + 2 * padding - dilation * (columns - 1) - 1) // stride + 1

    padded = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    padded = padded.reshape(batches, groups, channels, *padded.shape[2:])
    weight = weight.reshape(groups, filters // groups, channels, rows, columns)
    out = np.zeros((batches, groups, filters // groups, out_height, out_width), x.dtype)
    for i, j in np.ndindex(rows, columns):
        top, left = i * dilation, j * dilation
        seen = padded[
            ...,
            top : top + stride * (out_height - 1) + 1 : stride,
            left : left + stride * (out_width - 1) + 1 : stride,
        ]
        out += np.einsum("ngcyx,gfc->ngfyx", seen, weight[..., i, j])
    out = out.reshape(batches, filters, out_height, out_width)
    return out if bias is None else out + bias[:, None, None]


if __name__ == "__main__":
    from _protocol import main

    main(reference)
