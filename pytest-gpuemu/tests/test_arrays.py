"""Arrays on their way in and out: memory, strides, dtypes, and other frameworks."""

from __future__ import annotations

import time
from typing import Any

import gpuemu
import numpy as np
import pytest
from pytest_gpuemu import _core, arrays

DTYPES = sorted(arrays.DTYPES)
FLOATS = ["float32", "float16", "bfloat16", "float64"]

COPY = """
[validation]
strategies = ["layout"]
cases = 12
[[ops]]
name = "copy"
reference = "relu"
dtypes = ["float32", "float16", "bfloat16", "float64"]
[ops.schema]
dims = { A = [1, 2, 5], B = [3, 4] }
inputs = { x = ["A", "B"] }
outputs = { out = ["A", "B"] }
"""


def project(text: str = COPY) -> _core.Project:
    return _core.Project("gpuemu.toml", {}, text=text, keep=False)


def test_inputs_lie_in_memory_as_the_spec_says() -> None:
    one = project()
    expected = {
        "row": (16, 4),
        "transposed": (4, 20),
        "reversed": (16, -4),
    }
    for layout, strides in expected.items():
        case = one.case(f"copy::float32::layout{{A=5,B=4}} x:{layout} normal seed=1")
        x = case.inputs()["x"]
        assert x.dtype == np.float32 and x.shape == (5, 4)
        if layout == "reversed":
            assert any(stride < 0 for stride in x.strides)
        else:
            assert x.strides == strides, layout


def test_an_array_outlives_its_case() -> None:
    case = project().case("copy::float32::layout{A=5,B=4} x:transposed normal seed=1")
    x = case.inputs()["x"]
    before = x.copy()
    del case
    assert np.array_equal(x, before)
    x[...] = 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_right_function_in_every_float_dtype(dtype: str) -> None:
    verdict = gpuemu.check(lambda x: np.maximum(x, x.dtype.type(0)), "copy", contract=COPY, dtypes=[dtype])
    assert verdict, str(verdict)


def test_every_dtype_crosses_both_ways() -> None:
    for dtype in DTYPES:
        text = COPY.replace('dtypes = ["float32", "float16", "bfloat16", "float64"]', 'dtypes = ["float32"]').replace(
            'inputs = { x = ["A", "B"] }',
            f'inputs = {{ x = ["A", "B"], y = {{ dims = ["A", "B"], dtype = "{dtype}" }} }}',
        )
        text = text.replace('reference = "relu"', 'reference = "refs:none"')
        values = "normal" if dtype.startswith(("float", "bfloat")) else "full_range"
        case = project(text).case(f"copy::float32::layout{{A=5,B=4}} x:row normal y:transposed {values} seed=1")
        y = case.inputs()["y"]
        assert y.dtype.name == dtype and y.shape == (5, 4) and y.strides == (y.itemsize, 5 * y.itemsize)
        assert len({bytes(element) for element in y.ravel().view(f"V{y.itemsize}")}) > 1
        name, array = arrays.from_any("y", y)
        assert name == dtype and array.tobytes() == y.tobytes()


def test_answers_of_other_byte_order() -> None:
    verdict = gpuemu.check(
        lambda x: np.maximum(x, 0).astype(x.dtype.newbyteorder(">")), "copy", contract=COPY, dtypes=["float32"]
    )
    assert verdict, str(verdict)


class Interface:
    """Something with NumPy's array interface that is no array."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class DLPack:
    """Something with DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **given: Any) -> Any:
        return self.array.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [Interface, DLPack])
def test_answers_through_an_interface(wrap: Any) -> None:
    verdict = gpuemu.check(lambda x: wrap(np.maximum(x, 0)), "copy", contract=COPY, dtypes=["float32"])
    assert verdict, str(verdict)


class Late:
    """Computes when its memory is asked for."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> Any:
        time.sleep(0.01)
        self.answer = np.maximum(self.array, 0)
        return self.answer.__array_interface__


def test_reading_an_answer_counts_as_time_in_the_function() -> None:
    verdict = gpuemu.check(Late, "copy", contract=COPY, dtypes=["float32"], cases=3)
    # Each case is two calls.
    assert verdict and verdict.tests[0].seconds >= 3 * 2 * 0.01


class Named:
    """Computes when it is read, and says that it comes from a library that is known."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def get(self) -> Any:
        return np.maximum(self.array, 0)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.maximum(self.array, 0)


class Scalar(np.float32):
    """A scalar with a mind of its own."""


class Pretender:
    """Says that its class is another."""

    __class__ = np.ndarray  # type: ignore[assignment]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody asks")


@pytest.mark.parametrize("library", ["cupy", "jax", "jaxlib", "tensorflow", "torch", "numpy"])
def test_libraries_are_known_by_their_classes(library: str) -> None:
    one = type("ndarray", (Named,), {"__module__": f"{library}.core"})
    with pytest.raises(
        arrays.Refused, match=f"returned out as a {library}.core.ndarray, which computes its values when"
    ):
        arrays.from_any("out", one(np.ones(2)))


@pytest.mark.parametrize(
    "value, message",
    [
        (Scalar(1), "returned a Scalar for out: a subclass of a scalar of NumPy may answer differently"),
        (np.ma.array([1.0]), "returned a MaskedArray for out: a subclass of numpy.ndarray may answer differently"),
        (Pretender(), "returned out as a .*Pretender, which computes its values when it is asked for them"),
    ],
)
def test_subclasses_are_refused(value: Any, message: str) -> None:
    with pytest.raises(arrays.Refused, match=message):
        arrays.from_any("out", value)


@pytest.mark.parametrize("dtype", sorted(arrays.DTYPES))
def test_scalars_of_numpy_are_answers(dtype: str) -> None:
    import ml_dtypes

    made = np.zeros((), getattr(ml_dtypes, dtype) if dtype.startswith(("bfloat", "float8")) else dtype)
    name, array = arrays.from_any("out", made[()])
    assert name == dtype and array.shape == ()


# PyTorch.


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", FLOATS)
def test_torch_tensors(torch: Any, dtype: str) -> None:
    seen = set()

    def relu(x: Any) -> Any:
        assert type(x) is torch.Tensor and str(x.dtype) == f"torch.{dtype}"
        seen.add(x.is_contiguous())
        return torch.relu(x)

    verdict = gpuemu.check(relu, "copy", contract=COPY, dtypes=[dtype], arrays="torch")
    assert verdict, str(verdict)
    assert seen == {True, False}, "strides are kept"


def test_torch_writes_into_its_output(torch: Any) -> None:
    verdict = gpuemu.check(
        lambda x, out: torch.clamp(x, min=0, out=out), "copy", contract=COPY, dtypes=["float32"], arrays="torch"
    )
    assert verdict, str(verdict)


def test_torch_requires_no_gradient_to_be_dropped_by_hand(torch: Any) -> None:
    verdict = gpuemu.check(
        lambda x: torch.relu(x.clone().requires_grad_()), "copy", contract=COPY, dtypes=["float32"], arrays="torch"
    )
    assert verdict, str(verdict)


def test_torch_answers_that_are_refused(torch: Any) -> None:
    class Lazy(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    table = [
        (lambda x: torch.relu(x).as_subclass(Lazy), "a subclass of torch.Tensor may compute when it is read"),
        (lambda x: torch.relu(x).to("meta"), "returned a tensor without plain memory for out"),
        (lambda x: torch.relu(x).to_sparse(), "returned a tensor without plain memory for out"),
        (lambda x: torch.relu(x).to(torch.complex64), "a tensor of complex64, which is no dtype of gpuemu"),
    ]
    for function, message in table:
        verdict = gpuemu.check(function, "copy", contract=COPY, dtypes=["float32"], arrays="torch")
        assert not verdict and message in verdict.failures[0].message, str(verdict)


def test_frameworks_of_the_contract_choose_the_arrays(torch: Any) -> None:
    kinds = set()

    def relu(x: Any) -> Any:
        kinds.add(type(x))
        return torch.relu(x)

    text = COPY.replace('name = "copy"', 'name = "copy"\nframeworks = ["pytorch"]')
    assert gpuemu.check(relu, "copy", contract=text, dtypes=["float32"])
    assert kinds == {torch.Tensor}


def test_a_framework_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    verdict = gpuemu.check(lambda x: x, "copy", contract=COPY, dtypes=["float32"], arrays="cupy")
    assert "cupy arrays are asked for, and cupy cannot be imported" in verdict.failures[0].message


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    verdict = gpuemu.check(
        lambda x: jax.numpy.maximum(x, 0), "copy", contract=COPY, dtypes=["float32", "bfloat16"], arrays="jax"
    )
    assert verdict, str(verdict)
    # What stands for an array while a function is traced has no values.
    traced: list[Any] = []

    def trace(x: Any) -> Any:
        traced.append(x)
        return x

    jax.jit(trace)(1.0)
    for value in (traced[0], jax.random.key(0)):
        with pytest.raises(arrays.Refused, match="for out that holds no values"):
            arrays.from_any("out", value)


def test_tensorflow_tensors() -> None:
    tf = pytest.importorskip("tensorflow")

    def relu(x: Any) -> Any:
        assert isinstance(x, tf.Tensor)
        return tf.nn.relu(x)

    verdict = gpuemu.check(relu, "copy", contract=COPY, arrays="tensorflow")
    assert verdict and {test.test.split("::")[1] for test in verdict.tests} == set(FLOATS), str(verdict)
    # A tensor of a graph has no values.
    wrong = gpuemu.check(lambda x: tf.keras.Input((3,)), "copy", contract=COPY, dtypes=["float32"], arrays="tensorflow")
    assert not wrong and "returned" in wrong.failures[0].message, str(wrong)
    verdict = gpuemu.check(lambda x, out: None, "copy", contract=COPY, dtypes=["float32"], arrays="tensorflow")
    assert "tensorflow arrays cannot be written in place: return one array, out" in verdict.failures[0].message


class OnGpu:
    """Memory of a GPU, as CUDA's array interface describes it."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = {**array.__array_interface__, "data": (0x7F0000000000, False), "version": 3}


def test_memory_of_a_gpu_is_refused_with_the_way_out() -> None:
    verdict = gpuemu.check(OnGpu, "copy", contract=COPY, dtypes=["float32"])
    message = verdict.failures[0].message
    assert "OnGpu in the memory of a GPU: return it in this machine's memory, or as an array of CuPy" in message


class CupyArray:
    """As much of `cupy.ndarray` as a function may use; its values are there for `get` alone."""

    def __init__(self, array: Any) -> None:
        self._array = np.array(array)

    def relu(self) -> CupyArray:
        return CupyArray(np.maximum(self._array, 0))

    def get(self) -> Any:
        return self._array


def test_cupy_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    cupy = types.ModuleType("cupy")
    cupy.asarray = cupy.ndarray = CupyArray  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    verdict = gpuemu.check(lambda x: x.relu(), "copy", contract=COPY, dtypes=["float32"], arrays="cupy")
    assert verdict, str(verdict)

    class Lazy(CupyArray):
        def get(self) -> Any:
            return np.maximum(self._array, 0)

    verdict = gpuemu.check(lambda x: Lazy(x._array), "copy", contract=COPY, dtypes=["float32"], arrays="cupy")
    assert "returned a test_cupy_arrays.<locals>.Lazy for out: a subclass of cupy.ndarray may" in str(verdict)
    # Without a GPU CuPy raises as soon as it allocates.

    def no_driver(array: Any) -> Any:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version")

    cupy.asarray = no_driver  # type: ignore[attr-defined]
    verdict = gpuemu.check(lambda x: x.relu(), "copy", contract=COPY, dtypes=["float32"], arrays="cupy")
    assert "cupy arrays cannot be made here: " in verdict.failures[0].message, str(verdict)
    assert "cudaErrorInsufficientDriver" in verdict.failures[0].message


@pytest.mark.parametrize("dtype", FLOATS)
def test_cupy_on_a_gpu(dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("needs a GPU")
    verdict = gpuemu.check(
        lambda x: cupy.maximum(x, x.dtype.type(0)), "copy", contract=COPY, dtypes=[dtype], arrays="cupy"
    )
    assert verdict, str(verdict)


def test_torch_on_a_gpu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    monkeypatch.setenv("GPUEMU_DEVICE", "cuda")
    seen = set()

    def relu(x: Any, out: Any) -> None:
        assert x.is_cuda and out.is_cuda
        seen.add(x.is_contiguous())
        torch.clamp(x, min=0, out=out)

    assert gpuemu.check(relu, "copy", contract=COPY, arrays="torch")
    assert seen == {True, False}, "strides are kept"
    assert not gpuemu.check(lambda x, out: None, "copy", contract=COPY, arrays="torch", dtypes=["float32"])

    def changes(x: Any) -> Any:
        answer = torch.relu(x)
        x.zero_()
        return answer

    # What is written to an input there is seen here.
    assert not gpuemu.check(changes, "copy", contract=COPY, arrays="torch", dtypes=["float32"])
