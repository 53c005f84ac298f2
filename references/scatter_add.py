"""out = base, then out[index[i, j], j] += src[i, j] for axis 0, and so on for the others, as torch.scatter_add"""

import numpy as np


def reference(base, index, src, axis: int = 0):
    if np.any(index < 0):
        raise IndexError("an index below 0")
    places = list(np.indices(index.shape))
    added = src[tuple(places)]
    places[axis] = index
    out = base.copy()
    np.add.at(out, tuple(places), added)  # unlike out[places] += added, this counts indices that repeat
    return out


if __name__ == "__main__":
    from _protocol import main

    main(reference)
