"""The Triton driver: stock kernels over the caller's memory, arguments of every kind, what is told of a launch."""

import re
import sys

import numpy as np
import pytest

triton = pytest.importorskip("triton")
torch = pytest.importorskip("torch")
import triton.language as tl  # noqa: E402
from gpuemu.triton import (  # noqa: E402
    AutotuneWarning,
    KernelFault,
    activate,
    active,
    array,
    deactivate,
    emulated,
    last_launch,
    lend,
    lint,
    metrics,
)

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])


@pytest.fixture(autouse=True)
def driver():
    with emulated() as driver:
        yield driver


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=mask) * factor, mask=mask)


def test_torch_tensors_are_written_in_place():
    x, out = torch.arange(1000.0), torch.zeros(1000)
    scale_kernel[(8,)](x, out, 3.0, 1000, BLOCK=128)
    assert torch.equal(out, torch.arange(1000.0) * 3)


def test_numpy_arrays_are_written_in_place():
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    scale_kernel[(8,)](array(x), array(out), 3.0, 1000, BLOCK=128)
    assert np.array_equal(out, x * 3)


def test_a_view_is_lent_from_its_first_element():
    whole = torch.zeros(100)
    scale_kernel[(1,)](torch.ones(60), whole[20:80], 2.0, 60, BLOCK=64)
    assert torch.equal(whole, torch.cat([torch.zeros(20), torch.full((60,), 2.0), torch.zeros(20)]))


def test_what_lies_past_a_view_is_out_of_bounds_although_it_is_memory():
    whole = torch.zeros(100)
    with pytest.raises(KernelFault, match=r"element 30 of x_ptr, float32 of shape \(30,\): 1 past its end"):
        scale_kernel[(1,)](whole[:30], torch.zeros(64), 1.0, 31, BLOCK=64)


def test_elements_of_a_strided_view_count_in_memory():
    columns = torch.zeros(4, 10)[:, 3]
    with pytest.raises(KernelFault) as caught:
        scale_kernel[(1,)](torch.ones(64), columns, 1.0, 64, BLOCK=64)
    # Its four elements are 0, 10, 20 and 30 elements from the first.
    assert (caught.value.tensor, caught.value.offset) == ("out_ptr", 31)


def test_one_tensor_as_two_arguments():
    x = torch.arange(128.0)
    scale_kernel[(1,)](x, x, 2.0, 128, BLOCK=128)
    assert torch.equal(x, torch.arange(128.0) * 2)


def test_overlapping_tensors_are_one_memory():
    whole = torch.arange(128.0)
    first, second = whole[:64], whole[32:96]
    # Past the end of the first, and within the second: as the kernel sees it, it is one memory of 96 elements.
    scale_kernel[(1,)](first, torch.zeros(64), 1.0, 64, BLOCK=64)
    pair_kernel[(1,)]((torch.zeros(64), second), (64, 64), BLOCK=64)
    with pytest.raises(KernelFault, match="1 past its end") as caught:
        pair_kernel[(1,)]((first, second), (0, 67), BLOCK=128)
    assert (caught.value.kind, caught.value.tensor, caught.value.offset) == ("out-of-bounds", "tensors[1]", 64)


@triton.jit
def counting_kernel(out_ptr, count, step):
    value = 0
    while value < count:
        value += step
        tl.store(out_ptr, value)


def test_a_kernel_that_is_not_done_and_one_that_never_will_be():
    """One counts for longer than it may; the other comes back to where it was, and no budget helps."""
    out = torch.zeros(1, dtype=torch.int32)
    more = "GPUEMU_BUDGET, or activate(budget=...), lets it run for longer"
    with emulated(budget=10_000):
        counting_kernel[(1,)](out, 100, 2)
        with pytest.raises(KernelFault, match="kernel that does not end in counting_kernel") as caught:
            counting_kernel[(1,)](out, 1_000_000, 2)
    assert caught.value.kind == "runaway" and more in str(caught.value)
    with pytest.raises(KernelFault, match="comes back here for ever") as caught:
        counting_kernel[(1,)](out, 100, 0)
    assert more not in str(caught.value)


@triton.jit
def two_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=column < columns)


@pytest.mark.parametrize("columns", [1, 20, 64, 100, 1000])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_in_place_kernels_have_no_race(columns, num_warps):
    # With fewer elements than threads, several threads hold the same element and one stores it.
    x = torch.randn(3, columns)
    expected = torch.softmax(x, -1)
    two_kernel[(3,)](x, x, columns, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    torch.testing.assert_close(x, expected)


@triton.jit
def add_rms_kernel(x_ptr, sum_ptr, out_ptr, columns, BLOCK: tl.constexpr, APART: tl.constexpr):
    row, column = tl.program_id(0) * columns, tl.arange(0, BLOCK)
    mask = column < columns
    total = tl.load(sum_ptr + row + column, mask=mask) + tl.load(x_ptr + row + column, mask=mask)
    if APART:
        tl.debug_barrier()
    tl.store(sum_ptr + row + column, total, mask=mask)
    squares = tl.where(mask, total * total, 0.0)
    tl.store(out_ptr + row + column, total / tl.sqrt(tl.sum(squares, axis=0) / columns), mask=mask)


def test_a_store_in_place_while_other_warps_still_load_what_it_stores():
    """64 elements over 128 threads: the third warp has those of the first, and what it sums reaches the result."""

    def launch(apart: bool, warps: int) -> None:
        x, total, out = torch.randn(3, 64), torch.randn(3, 64), torch.empty(3, 64)
        expected = total + x
        add_rms_kernel[(3,)](x, total, out, 64, BLOCK=64, APART=apart, num_warps=warps)
        assert torch.equal(total, expected)

    if VERSION < (3, 5):
        # There warps beyond the data write their sums nowhere, and whatever they load is right.
        launch(apart=False, warps=4)
        return
    with pytest.raises(KernelFault, match="one may store what\n  another has still to load") as caught:
        launch(apart=False, warps=4)
    assert (caught.value.kind, caught.value.tensor) == ("global-race", "sum_ptr")
    # Both ways out that the message names.
    launch(apart=True, warps=4)
    launch(apart=False, warps=2)


@triton.jit
def both_means(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0, 0.0, count_b / count)
    apart = mean_b - mean_a
    return mean_a + apart * share, squares_a + squares_b + apart * apart * count_a * share, count


@triton.jit
def variance_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=mask, other=0.0)
    state = (x, tl.zeros((BLOCK,), tl.float32), mask.to(tl.float32))
    _, squares, count = tl.reduce(state, 0, both_means)
    tl.store(out_ptr + tl.program_id(0), squares / count)


@pytest.mark.parametrize("columns", [31, 33, 64])
def test_means_that_cancel_are_no_race(columns):
    """Every lane stores the mean of its warp, rounded in its own order: near zero they share no digit."""
    rows = 64
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns))
    x -= x.mean(1, keepdim=True)
    out = torch.empty(rows)
    variance_kernel[(rows,)](x, out, columns, BLOCK=64)
    torch.testing.assert_close(out, x.var(1, correction=0), rtol=1e-4, atol=1e-5)


@triton.jit
def kinds_kernel(out_ptr, flag, small, large, unsigned, real, nothing, ONE: tl.constexpr):
    tl.store(out_ptr, flag.to(tl.float64))
    tl.store(out_ptr + 1, small.to(tl.float64))
    tl.store(out_ptr + 2, large.to(tl.float64))
    tl.store(out_ptr + 3, unsigned.to(tl.float64))
    tl.store(out_ptr + 4, real.to(tl.float64))
    if nothing is None:
        tl.store(out_ptr + 5, ONE)


def test_scalars_of_every_kind():
    out = torch.zeros(6, dtype=torch.float64)
    kinds_kernel[(1,)](out, True, -7, 1 << 40, (1 << 64) - 2048, 0.1, None, ONE=1)
    assert out.tolist() == [1, -7, 2**40, 2**64 - 2048, float(np.float32(0.1)), 1]


@triton.jit
def typed_kernel(out_ptr, half: tl.float16, brain: tl.bfloat16, double: tl.float64):
    tl.store(out_ptr, half.to(tl.float64))
    tl.store(out_ptr + 1, brain.to(tl.float64))
    tl.store(out_ptr + 2, double)


def test_scalars_of_declared_precision():
    out = torch.zeros(3, dtype=torch.float64)
    typed_kernel[(1,)](out, 0.1, 0.15625, 0.1)
    assert out.tolist() == [float(np.float16(0.1)), 0.15625, 0.1]


@triton.jit
def pair_kernel(tensors, counts, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(tensors[0] + place, mask=place < counts[0])
    tl.store(tensors[1] + place, x, mask=place < counts[1])


def test_tuples_are_taken_apart():
    x, out = torch.arange(64.0), torch.zeros(64)
    pair_kernel[(1,)]((x, out), (50, 50), BLOCK=64)
    assert torch.equal(out[:50], x[:50])
    with pytest.raises(KernelFault, match=r"element 64 of tensors\[1\]"):
        pair_kernel[(1,)]((torch.zeros(128), out), (128, 65), BLOCK=128)


@triton.jit
def dtype_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out_ptr + place, tl.load(x_ptr + place).to(tl.float32))


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.int8, torch.uint8, torch.int16,
        torch.int64, torch.bool,
    ],
)  # fmt: skip
def test_dtypes_of_torch(dtype):
    x = (torch.arange(32) % 3).to(dtype)
    out = torch.zeros(32)
    dtype_kernel[(1,)](x, out, BLOCK=32)
    assert torch.equal(out, x.to(torch.float32))


@triton.jit
def descriptor_kernel(source, target, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2)


def test_tensor_descriptors():
    from triton.tools.tensor_descriptor import TensorDescriptor

    x, out = torch.randn(40, 48), torch.zeros(40, 48)
    source, target = (TensorDescriptor.from_tensor(tensor, [32, 32]) for tensor in (x, out))
    descriptor_kernel[(2, 2)](source, target, BLOCK=32)
    assert torch.equal(out, x * 2)


@triton.jit
def talking_kernel(x_ptr):
    tl.device_print("value", tl.load(x_ptr))


def test_device_print(capsys):
    talking_kernel[(1,)](torch.tensor([42], dtype=torch.int32), num_warps=1)
    assert re.match(r"pid \(0, 0, 0\) idx \(\) ?value: 42", capsys.readouterr().out)
    assert "42" in last_launch().printed


@triton.jit
def checked_kernel(x_ptr, limit):
    tl.device_assert(tl.load(x_ptr) < limit, "too large")


def test_device_assert():
    checked_kernel[(1,)](torch.tensor([3]), 4, debug=True)
    # Without debug, Triton compiles no assertion.
    checked_kernel[(1,)](torch.tensor([5]), 4)
    with pytest.raises(KernelFault, match="device_assert failed in checked_kernel") as caught:
        checked_kernel[(1,)](torch.tensor([5]), 4, debug=True)
    assert (caught.value.kind, "too large" in caught.value.detail) == ("assert", True)


def test_a_grid_without_programs_is_no_launch():
    out = torch.zeros(1)
    scale_kernel[(0,)](out, out, 1.0, 1, BLOCK=32)
    assert last_launch() is None


def test_a_read_only_array_is_not_written():
    out = np.zeros(32, np.float32)
    out.flags.writeable = False
    with pytest.raises(KernelFault, match="read-only"):
        scale_kernel[(1,)](array(np.ones(32, np.float32)), array(out), 1.0, 32, BLOCK=32)
    assert not out.any()


def test_hooks_run_around_a_launch():
    from triton import knobs

    seen = []
    knobs.runtime.launch_enter_hook = lambda metadata: seen.append(("enter", metadata.get()["name"]))
    knobs.runtime.launch_exit_hook = lambda metadata: seen.append(("exit", metadata.get()["name"]))
    try:
        scale_kernel[(1,)](torch.ones(32), torch.ones(32), 1.0, 32, BLOCK=32)
    finally:
        knobs.runtime.launch_enter_hook = None
        knobs.runtime.launch_exit_hook = None
    assert seen == [("enter", "scale_kernel"), ("exit", "scale_kernel")]


def test_metrics_and_lint_come_with_a_kernel():
    compiled = scale_kernel[(1,)](torch.ones(32), torch.ones(32), 1.0, 32, BLOCK=32)
    found = metrics(compiled)
    assert found["mix"]["global"] == 2
    assert found["global_access_bytes"] == {4: 2}
    assert 0 < found["registers"] < 64
    assert all(severity in ("note", "warning", "error") for severity, *_ in lint(compiled))


def test_the_same_launch_answers_the_same():
    x = torch.zeros(1)
    messages = set()
    for _ in range(3):
        with pytest.raises(KernelFault) as caught:
            scale_kernel[(1,)](x, torch.zeros(64), 1.0, 64, BLOCK=64)
        messages.add(str(caught.value))
        # What came between makes no difference.
        scale_kernel[(1,)](torch.ones(64), torch.zeros(64), 1.0, 64, BLOCK=64)
    assert len(messages) == 1


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (32, 64)], key=["count"], reset_to_zero=["sum_ptr"]
)
@triton.heuristics({"EVEN": lambda args: args["count"] % args["BLOCK"] == 0})
@triton.jit
def sum_kernel(x_ptr, sum_ptr, count, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place) if EVEN else tl.load(x_ptr + place, mask=place < count, other=0)
    tl.atomic_add(sum_ptr, tl.sum(x, axis=0))


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("count", [64, 100])
def test_autotune_and_heuristics(count):
    from triton import knobs

    x, out = torch.arange(count, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    sum_kernel[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](x, out, count)
    assert out.item() == count * (count - 1) // 2
    assert sum_kernel.best_config.kwargs["BLOCK"] in (32, 64)
    assert knobs.runtime.interpret is False


@triton.autotune(configs=[triton.Config({"STEP": step}) for step in (1, 2)], key=[])
@triton.jit
def disagreeing_kernel(x_ptr, out_ptr, STEP: tl.constexpr):
    place = tl.arange(0, 32)
    tl.store(out_ptr + place, tl.load(x_ptr + place) * STEP)


def test_configurations_that_disagree_are_told():
    with pytest.warns(AutotuneWarning, match=r"disagree on out_ptr: 31 of 32 elements, element 1 is 1 with STEP=1"):
        disagreeing_kernel[(1,)](torch.arange(32.0), torch.zeros(32))


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, inner, SIZE: tl.constexpr):
    place = tl.arange(0, SIZE)
    sums = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, inner, SIZE):
        a = tl.load(a_ptr + place[:, None] * inner + start + place[None, :])
        b = tl.load(b_ptr + (start + place)[:, None] * SIZE + place[None, :])
        sums = tl.dot(a, b, sums)
    tl.store(out_ptr + place[:, None] * SIZE + place[None, :], sums)


tuned_product_kernel = triton.autotune(
    configs=[triton.Config({}, num_stages=8), triton.Config({}, num_stages=1)], key=[]
)(product_kernel)


def test_more_shared_memory_than_the_target_has():
    """As on a GPU of that architecture: an A100's block has 163 KiB (CUDA C++ Programming Guide, compute capability 8.0)."""
    a, b, out = (torch.ones(shape, dtype=torch.float32) for shape in ((64, 512), (512, 64), (64, 64)))
    with pytest.raises(triton.runtime.errors.OutOfResources, match="shared memory, Required: .* limit: 166912"):
        product_kernel[(1,)](a, b, out, 512, SIZE=64, num_stages=8)
    # The tuner passes over such a configuration.
    tuned_product_kernel[(1,)](a, b, out, 512, SIZE=64)
    assert tuned_product_kernel.best_config.num_stages == 1
    assert torch.equal(out, torch.full((64, 64), 512.0))


def test_the_stock_benchmark_runs(driver):
    from triton.testing import do_bench

    assert do_bench(lambda: scale_kernel[(1,)](torch.ones(32), torch.ones(32), 1.0, 32, BLOCK=32), warmup=1, rep=1) > 0


def test_tensors_that_cannot_be_lent():
    with pytest.raises(TypeError, match="x_ptr: a tensor on meta"):
        scale_kernel[(1,)](torch.ones(32, device="meta"), torch.ones(32), 1.0, 32, BLOCK=32)


@triton.jit
def raw_kernel(address, out_ptr):
    tl.store(out_ptr, tl.load(address.to(tl.int64).to(tl.pointer_type(tl.float32))))


@triton.jit
def group_kernel(addresses_ptr, out_ptr, BLOCK: tl.constexpr):
    address = tl.load(addresses_ptr + tl.program_id(0))
    place = tl.arange(0, BLOCK)
    values = tl.load(address.to(tl.pointer_type(tl.float32)) + place)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + place, values)


def test_an_address_is_a_tensor_once_it_is_lent():
    x = torch.full((32,), 7.0)
    with pytest.raises(KernelFault) as caught:
        raw_kernel[(1,)](x.data_ptr(), torch.ones(32))
    assert caught.value.kind in ("illegal-address", "out-of-bounds")
    out = torch.zeros(32)
    raw_kernel[(1,)](lend(x), out)
    assert out[0] == 7


def test_addresses_in_a_tensor():
    tensors = [torch.full((64,), float(index)) for index in range(3)]
    addresses = torch.tensor([lend(tensor) for tensor in tensors])
    out = torch.zeros(3, 64)
    group_kernel[(3,)](addresses, out, BLOCK=64)
    assert torch.equal(out, torch.stack(tensors))
    tensors[1] = torch.zeros(1)
    with pytest.raises(KernelFault):
        group_kernel[(3,)](addresses, out, BLOCK=64)


def test_activation_is_a_stack():
    outer = active()
    inner = activate(seed=1)
    assert active() is inner and triton.runtime.driver.active is inner
    deactivate()
    assert active() is outer


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path):
    from triton import knobs

    before = knobs.cache.dir
    (tmp_path / "file").write_text("")
    knobs.cache.dir = str(tmp_path / "file" / "folder")
    try:
        with pytest.warns(UserWarning, match="cannot be written to"), emulated():
            out = torch.zeros(32)
            scale_kernel[(1,)](torch.ones(32), out, 2.0, 32, BLOCK=32)
            assert out.sum() == 64
    finally:
        knobs.cache.dir = before


def test_an_old_triton_is_refused(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.3.1")
    with pytest.raises(ImportError, match="Triton 3.3.1 is too old: the driver is written for 3.4 and later"):
        activate()


def test_without_triton_the_way_out_is_told(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "triton", None)
        with pytest.raises(ImportError, match="pip install triton"):
            activate()


def test_unknown_settings_are_refused():
    with pytest.raises(TypeError, match="unknown settings"):
        activate(sanitisers=True)


def test_programs_do_not_depend_on_threads():
    x = torch.randn(4096)
    outs = []
    for threads in (1, 2):
        with emulated(threads=threads):
            outs.append(torch.zeros(4096))
            scale_kernel[(32,)](x, outs[-1], 0.3, 4096, BLOCK=128)
    assert torch.equal(*outs)


def test_nothing_of_it_is_needed_to_import_gpuemu():
    import subprocess

    code = "import gpuemu.triton, sys; assert not {'triton', 'torch'} & set(sys.modules), 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True, env={**__import__("os").environ})
