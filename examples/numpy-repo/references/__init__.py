"""Right answers, in NumPy: computed in the dtype of their inputs, which is float64 where it matters."""
