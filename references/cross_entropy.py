"""loss[i] = ln(sum_c exp(logits[i, c])) - logits[i, targets[i]]; 0, and not counted, where the target is ignore_index"""

import numpy as np


def reference(logits, targets, ignore_index: int = -100, reduction: str = "none"):
    counted = targets != ignore_index
    rows, classes = logits[counted], targets[counted]
    if np.any(classes < 0):
        raise IndexError("a target below 0 that is not ignore_index")
    shifted = rows - np.max(rows, axis=-1, keepdims=True)
    log_sums = np.log(np.sum(np.exp(shifted), axis=-1))
    losses = np.zeros(targets.shape, logits.dtype)
    losses[counted] = log_sums - shifted[np.arange(len(classes)), classes]
    if reduction == "mean":
        return np.mean(losses[counted])
    return np.sum(losses) if reduction == "sum" else losses


if __name__ == "__main__":
    from _protocol import main

    main(reference)
