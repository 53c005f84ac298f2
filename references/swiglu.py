"""swiglu(gate, up) = silu(gate) * up"""

import numpy as np


def reference(gate, up):
    return gate / (1 + np.exp(-gate)) * up


if __name__ == "__main__":
    from _protocol import main

    main(reference)
