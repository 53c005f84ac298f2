"""Other values for the call before the one that counts: cases of the same shapes, drawn again."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np

from pytest_gpuemu import _core

# What is kept between calls; the rest is drawn again for each.
KEPT_BYTES = 1 << 28
# Kinds of values that another seed fills otherwise, the gentle ones first. Which of them a domain has, the core knows.
FLOATS = ("normal", "small", "permutation", "unique", "sorted", "offsets")
INTEGERS = ("small", "permutation", "unique", "sorted", "offsets", "full_range")
# Those that are what they should be, or the only ones of their domain.
AS_THEY_ARE = frozenset(["normal", "small", "permutation", "unique", "sorted", "offsets", "generated", "one_hot"])

Arrays = dict[str, np.ndarray]


class Source(Protocol):
    """What draws cases."""

    def case(self, spec: str) -> _core.Case: ...


class Others:
    """For the specs of a test, the inputs of other cases that its op declares as valid: the same shapes, parameters and
    dtypes, another seed, and values that depend on it."""

    def __init__(self, source: Source, inputs: list[str], bits: bool, kept_bytes: int = KEPT_BYTES) -> None:
        self.source = source
        self.bits = bits
        self.left = kept_bytes
        named = "".join(rf" {re.escape(name)}:(\S+) (\S+)" for name in inputs)
        self.line = re.compile(named + r" seed=([0-9a-f]{1,16})(?![0-9a-f])")
        self.names = inputs
        # How each input is drawn anew; the domains of one test are alike.
        self.kinds: dict[str, str] | None = None
        self.heads: set[str] = set()
        self.specs: dict[Any, str | None] = {}
        self.kept: dict[Any, Arrays] = {}

    def learn(self, spec: str) -> None:
        """Takes the spec of a case that is to come. One that cannot be drawn will say so itself."""
        found = list(self.line.finditer(spec))
        if not found or spec[: found[-1].start()] in self.heads:
            return
        head, told = spec[: found[-1].start()], found[-1].groups()
        self.heads.add(head)
        # One bit in two is another.
        seed = int(told[-1], 16) ^ 0xA5A5_5A5A_A5A5_5A5A
        own = {name: told[2 * place + 1].partition("@")[0] for place, name in enumerate(self.names)}
        drawn = self._drawn(head, own, seed)
        if drawn is None:
            return
        text, case = drawn
        arrays = case.inputs(self.bits)
        key = key_of(arrays, case.outputs(self.bits), case.params, case.dtypes)
        if key in self.specs:
            # Sizes that no tensor shows, and that a domain may depend on.
            self.specs[key] = None
            self.kept.pop(key, None)
            return
        self.specs[key] = text
        size = sum(array.nbytes for array in arrays.values())
        if size <= self.left:
            self.left -= size
            self.kept[key] = arrays

    def _drawn(self, head: str, own: dict[str, str], seed: int) -> tuple[str, _core.Case] | None:
        def line(kinds: dict[str, str]) -> str:
            return head + "".join(f" {name}:row {kinds[name]}" for name in self.names) + f" seed={seed:016x}"

        def case(kinds: dict[str, str]) -> _core.Case | None:
            try:
                return self.source.case(line(kinds))
            except _core.GpuemuError:
                return None

        if self.kinds is None:
            plain = case(own)
            if plain is None:
                return None
            kinds = dict(own)
            for name, kind in own.items():
                if kind in AS_THEY_ARE:
                    continue
                floats = plain.dtypes[name].startswith(("float", "bfloat"))
                tried = ({**kinds, name: other} for other in (FLOATS if floats else INTEGERS))
                kinds = next((other for other in tried if case(other) is not None), kinds)
            self.kinds = kinds
        for kinds in (self.kinds, own):
            made = case(kinds)
            if made is not None:
                return line(kinds), made
        return None

    def of(self, inputs: Arrays, outputs: Any, params: dict[str, Any], dtypes: dict[str, str]) -> Arrays | None:
        """Other inputs for a call, where there are some."""
        key = key_of(inputs, outputs, params, dtypes)
        spec = self.specs.get(key)
        if spec is None:
            return None
        return self.kept.get(key) or self.source.case(spec).inputs(self.bits)


def key_of(inputs: Arrays, outputs: Any, params: dict[str, Any], dtypes: dict[str, str]) -> Any:
    """What two calls have in common whose values can be exchanged."""
    shapes = [(name, array.shape, dtypes[name]) for name, array in inputs.items()]
    written = [(name, None if array is None else array.shape) for name, array in outputs.items()]
    return tuple(shapes), tuple(written), tuple(sorted(params.items()))


def put(array: np.ndarray, values: np.ndarray) -> None:
    """Writes values into a view. Where an axis has stride 0, its slices are one, and hold the first."""
    shared = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
    array[shared] = values[shared]
