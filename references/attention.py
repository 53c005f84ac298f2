"""out[i] = sum_j p[i, j] v[j] with p[i] = softmax_j(scale * q[i].k[j]), for every head of every batch

q is [B, H, S, D], k [B, G, T, D], v [B, G, T, E]; H / G neighbouring heads share their keys and values. With causal,
query i sees keys 0 to i, as is_causal of PyTorch's scaled_dot_product_attention; keys it does not see take no part.
"""

import numpy as np


def reference(q, k, v, scale: float | None = None, causal: bool = False):
    batches, heads, queries, depth = q.shape
    groups, keys = k.shape[1:3]
    if scale is None:
        scale = 1 / np.sqrt(depth)
    out = np.empty((batches, heads, queries, v.shape[3]), q.dtype)
    for batch, head, query in np.ndindex(batches, heads, queries):
        group = head // (heads // groups)
        seen = min(query + 1, keys) if causal else keys
        scores = scale * (k[batch, group, :seen] @ q[batch, head, query])
        out[batch, head, query] = softmax(scores) @ v[batch, group, :seen]
    return out


def softmax(scores):
    exponentials = np.exp(scores - np.max(scores, initial=-np.inf))
    return exponentials / np.sum(exponentials)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
