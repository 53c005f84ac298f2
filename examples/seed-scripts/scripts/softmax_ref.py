"""The reference: softmax over the last axis, computed in the dtype of the input (gpuemu sends float64)."""

import base64
import json
import sys

import numpy as np

request = json.load(sys.stdin)
tensor = request["inputs"]["logits"]
x = np.frombuffer(base64.b64decode(tensor["data"]), dtype=tensor["dtype"]).reshape(tensor["shape"])
with np.errstate(all="ignore"):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    out = exponentials / exponentials.sum(axis=-1, keepdims=True)
data = base64.b64encode(out.tobytes()).decode()
print(json.dumps({"shape": list(out.shape), "dtype": str(out.dtype), "data": data}))
