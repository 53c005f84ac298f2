"""Torch code that asks for CUDA, served from the CPU by torch's function mode."""

import copy
import ctypes
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

triton = pytest.importorskip("triton")
torch = pytest.importorskip("torch")
import gpuemu  # noqa: E402
import triton.language as tl  # noqa: E402
from gpuemu.triton import KernelFault, emulated  # noqa: E402


@pytest.fixture(autouse=True)
def cuda():
    with emulated(torch_cuda=True):
        yield


FACTORIES = [
    lambda device: torch.zeros(3, device=device),
    lambda device: torch.tensor([1.0, 2.0, 3.0], device=device),
    lambda device: torch.randn((3,), device=device),
    lambda device: torch.arange(3, device=device),
    lambda device: torch.full((3,), 7, device=device),
    lambda device: torch.empty(3, device=device),
    lambda device: torch.zeros_like(torch.zeros(3), device=device),
    lambda device: torch.randint(0, 5, (3,), device=device),
    lambda device: torch.as_tensor(np.ones(3), device=device),
    lambda device: torch.ones(3).to(device),
    lambda device: torch.ones(3).to(device, torch.float16),
    lambda device: torch.ones(3).to(device=device),
    lambda device: torch.ones(3).new_zeros(3, device=device),
]


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)])
@pytest.mark.parametrize("make", FACTORIES)
def test_factories(make, device):
    tensor = make(device)
    assert tensor.is_cuda
    assert tensor.device == torch.device("cuda", 0)
    assert not tensor.cpu().is_cuda
    assert tensor.shape == (3,)


@pytest.mark.parametrize("make", FACTORIES)
def test_the_cpu_stays_the_cpu(make):
    assert make("cpu").device == torch.device("cpu")


def test_the_default_device_and_the_context():
    with torch.device("cuda"):
        assert torch.zeros(3).is_cuda
    assert not torch.zeros(3).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(3).is_cuda
    finally:
        torch.set_default_device(None)


def test_answers_are_where_their_arguments_are():
    x = torch.randn(4, 4, device="cuda", requires_grad=True)
    for y in (x + 1, x.t(), x[0], x.reshape(-1), torch.softmax(x, -1), x.float(), x.detach(), *x.unbind(), x.data):
        assert y.is_cuda
    assert torch.empty(3, device=x.device).is_cuda
    assert torch.zeros_like(x).is_cuda
    (x * 2).sum().backward()
    assert x.grad.is_cuda


def test_copies_are_made_where_a_gpu_would_make_them():
    x = torch.zeros(3)
    y = x.cuda()
    y += 1
    assert (x.tolist(), y.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert y.cuda() is y
    z = y.cpu()
    z += 1
    assert (y.tolist(), z.tolist()) == ([1, 1, 1], [2, 2, 2])
    w = y.to("cpu")
    w += 5
    assert y.tolist() == [1, 1, 1]


def test_modules_move():
    layer = torch.nn.Linear(3, 2).cuda()
    assert layer.weight.is_cuda
    out = layer(torch.randn(4, 3, device="cuda"))
    assert out.is_cuda and out.shape == (4, 2)
    assert torch.nn.Linear(3, 2, device="cuda").weight.device.type == "cuda"


def test_outside_of_the_mode_nothing_is_left():
    tensor = torch.zeros(3, device="cuda")
    with torch._C.DisableTorchFunction():
        assert tensor.device == torch.device("cpu")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: y * x,
        lambda x, y: x.add_(y),
        lambda x, y: torch.maximum(x, y),
        lambda x, y: torch.where(x > 0, x, y),
        lambda x, y: x @ y,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.nn.functional.linear(x, y),
        lambda x, y: torch.nn.Linear(3, 3)(x),
        lambda x, y: torch.einsum("ij,jk->ik", x, y),
        lambda x, y: torch.equal(x, y),
        lambda x, y: torch.allclose(x, y),
        lambda x, y: x + y[0],
        lambda x, y: x + y.float(),
        lambda x, y: x + (y + 1),
        lambda x, y: x + x.cpu(),
        lambda x, y: x + torch.as_tensor(y, device="cpu"),
    ],
)
def test_devices_do_not_mix(call):
    """What CUDA's torch says of tensors on two devices (`c10` and `TensorIterator`)."""
    x, y = torch.ones(3, 3, device="cuda"), torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, .* cuda:0 and cpu!"):
        call(x, y)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y.sum(),
        lambda x, y: x * torch.tensor(2.0),
        lambda x, y: x.copy_(y),
        lambda x, y: x[torch.tensor([0, 2])],
        lambda x, y: x.expand_as(y),
        lambda x, y: x + y.to(x),
        lambda x, y: x + y.to(x.device),
        lambda x, y: x + torch.as_tensor(y, device="cuda"),
        lambda x, y: x + torch.zeros_like(x),
        lambda x, y: x + torch.ones(3, device=x.device),
        lambda x, y: torch.nn.functional.linear(x, torch.nn.Linear(3, 3).cuda().weight),
        lambda x, y: x[0].add_(1),
    ],
)
def test_what_may_come_from_the_cpu(call):
    assert call(torch.ones(3, 3, device="cuda"), torch.ones(3, 3)).is_cuda


def test_copies_of_as_tensor():
    """A tensor, or an array of NumPy, lies in another memory than what a GPU is given of it."""
    x, array = torch.zeros(3), np.zeros(3)
    for source in (x, array):
        y = torch.as_tensor(source, device="cuda")
        y += 1
        assert (list(source), y.tolist(), y.is_cuda) == ([0, 0, 0], [1, 1, 1], True)
    z = torch.as_tensor(y, device="cpu")
    z += 1
    assert y.tolist() == [1, 1, 1] and not z.is_cuda and not x.is_cuda
    assert torch.as_tensor(x, device="cpu") is x


@triton.jit
def add_one_kernel(x_ptr, count, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < count)
    tl.store(x_ptr + place, x + 1, mask=place < count)


def test_a_launch_with_a_tensor_that_was_left_on_the_cpu():
    x, out = torch.ones(64), torch.empty(64, device="cuda")
    # The message of Triton's own launcher.
    message = (
        r"Pointer argument \(at 0\) cannot be accessed from Triton \(cpu tensor\?\): .* x_ptr .* out_ptr on cuda:0"
    )
    with pytest.raises(ValueError, match=message):
        copy_kernel[(1,)](x, out, BLOCK=64)
    copy_kernel[(1,)](x.cuda(), out, BLOCK=64)
    assert torch.equal(out.cpu(), x)
    # All of them on the CPU, as the emulator is also given them.
    copy_kernel[(1,)](x, torch.empty(64), BLOCK=64)


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out_ptr + place, tl.load(x_ptr + place))


class Doubled(torch.autograd.Function):  # type: ignore[name-defined]
    """A function with a kernel on the way there and on the way back."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        copy_kernel[(1,)](x, out, BLOCK=64)
        return out * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        assert gradient.is_cuda and x.is_cuda and gradient.device == torch.device("cuda", 0)
        assert torch.cuda.is_available() and not torch.ones(1).is_cuda
        out = torch.empty(64, device="cuda")
        copy_kernel[(1,)](gradient.contiguous(), out, BLOCK=64)
        with pytest.raises(RuntimeError, match="on the same device"):
            out + torch.ones(64)
        return out * torch.full((64,), 2.0, device=gradient.device)


@pytest.mark.parametrize(
    "back",
    [
        lambda y, x: (y.backward(), x.grad)[1],
        lambda y, x: (torch.autograd.backward([y]), x.grad)[1],
        lambda y, x: torch.autograd.grad(y, x)[0],
    ],
)
def test_the_way_back_is_served_too(back):
    x = torch.randn(64, device="cuda", requires_grad=True)
    gradient = back((Doubled.apply(x) * torch.arange(64, device="cuda")).sum(), x)
    assert gradient.is_cuda
    assert torch.equal(gradient, 2.0 * torch.arange(64, device="cuda"))
    # Of a graph on the CPU nothing becomes CUDA's.
    y = torch.randn(3, requires_grad=True)
    assert not torch.autograd.grad((y * y).sum(), y)[0].is_cuda


# PyTorch's lists of what CUDA's autocast computes in which precision.
AUTOCAST = [
    (lambda x: x @ x, "lower"),
    (lambda x: torch.nn.functional.linear(x, x), "lower"),
    (lambda x: torch.bmm(x[None], x[None]), "lower"),
    (lambda x: torch.nn.functional.conv2d(x[None, None], x[None, None]), "lower"),
    (lambda x: torch.softmax(x @ x, -1), torch.float32),
    (lambda x: torch.nn.functional.layer_norm(x @ x, (8,)), torch.float32),
    (lambda x: (x @ x).exp(), torch.float32),
    (lambda x: (x @ x).sum(), torch.float32),
    (lambda x: (x @ x) ** 2, torch.float32),
    (lambda x: torch.nn.functional.mse_loss(x @ x, x), torch.float32),
    (lambda x: torch.relu(x @ x), "lower"),
    (lambda x: x * 2, torch.float32),
    (lambda x: torch.nn.LSTM(8, 8).cuda()(x @ x)[0], "lower"),
]


@pytest.mark.parametrize("lower", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("compute, dtype", AUTOCAST)
def test_autocast(compute, dtype, lower):
    x = torch.randn(8, 8, device="cuda")
    before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    with torch.autocast("cuda", dtype=lower):
        out = compute(x)
        assert out.dtype is (lower if dtype == "lower" else dtype) and out.is_cuda
        with torch.autocast("cuda", enabled=False):
            assert compute(x).dtype is torch.float32
        assert compute(x).dtype is out.dtype
    assert compute(x).dtype is torch.float32
    assert (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")) == before


def test_functions_of_the_users_own_cast_too():
    class Own(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("cuda")
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient

    with torch.autocast("cuda"):
        assert Own.apply(torch.randn(8, 8, device="cuda")).dtype is torch.float16
    assert Own.apply(torch.randn(8, 8, device="cuda")).dtype is torch.float32


@triton.jit
def fill_kernel(out_ptr, first, count, BLOCK: tl.constexpr):
    place = first + tl.arange(0, BLOCK)
    tl.store(out_ptr + place, place, mask=place < count)


def test_what_nobody_wrote_is_not_read():
    with pytest.raises(KernelFault, match="read of memory that nothing wrote") as caught:
        add_one_kernel[(1,)](torch.empty(64, device="cuda"), 64, BLOCK=64)
    assert (caught.value.tensor, caught.value.offset) == ("x_ptr", 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.zero_(),
        lambda x: x.copy_(torch.ones(64)),
        lambda x: x[:].fill_(1),
        lambda x: fill_kernel[(1,)](x, 0, 64, BLOCK=64),
        # What torch does not count, or counts for an alias alone.
        lambda x: x.data.fill_(1),
        lambda x: x.data.normal_(),
        lambda x: x.data.copy_(torch.ones(64)),
        lambda x: x.data.__setitem__(slice(None), 0),
        lambda x: x.data.view(8, 8).t().zero_(),
        lambda x: torch.add(torch.ones(64, device="cuda"), 1, out=x.data),
        lambda x: fill_kernel[(1,)](x.data, 0, 64, BLOCK=64),
        lambda x: setattr(x, "data", torch.ones(64, device="cuda")),
        lambda x: torch.nn.init.uniform_(torch.nn.Parameter(x)),
        lambda x: torch._foreach_zero_([x.data]),
        lambda x: x.untyped_storage().fill_(0),
        lambda x: x.set_(torch.ones(64, device="cuda")),
        lambda x: torch.from_dlpack(x.detach()).fill_(1),
        lambda x: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).fill_(1),
        lambda x: ctypes.memset(x.data_ptr(), 0, 256),
        lambda x: torch.inference_mode()(x.fill_)(1),
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_what_somebody_wrote_is_read(write, inference):
    with torch.inference_mode(inference):
        x = torch.empty(64, device="cuda")
        write(x)
        add_one_kernel[(1,)](x, 64, BLOCK=64)


@pytest.mark.parametrize(
    "dtype, value", [(torch.uint8, 0x5A), (torch.int8, 0), (torch.bool, True), (torch.bool, False)]
)
@pytest.mark.parametrize("alias", [lambda x: x.data, lambda x: torch.from_dlpack(x.detach().view(torch.uint8))])
def test_small_numbers_that_somebody_wrote_are_read(dtype, value, alias):
    x = torch.empty(64, dtype=dtype, device="cuda")
    alias(x).fill_(value)
    copy_kernel[(1,)](x, torch.empty_like(x), BLOCK=64)


@pytest.mark.parametrize(
    "alias", [lambda x: x, lambda x: x.data, lambda x: x.detach(), lambda x: torch.nn.Parameter(x).data]
)
@pytest.mark.parametrize("inference", [False, True])
def test_aliases_of_what_nobody_wrote_are_not_read(alias, inference):
    with torch.inference_mode(inference):
        x = torch.empty(64, device="cuda")
        with pytest.raises(KernelFault, match="read of memory that nothing wrote"):
            add_one_kernel[(1,)](alias(x), 64, BLOCK=64)


def test_what_a_kernel_left_out_stays_unwritten():
    x = torch.empty(64, device="cuda")
    fill_kernel[(1,)](x, 0, 40, BLOCK=64)
    add_one_kernel[(1,)](x, 40, BLOCK=64)
    with pytest.raises(KernelFault, match="element 40 of x_ptr"):
        add_one_kernel[(1,)](x, 41, BLOCK=64)


def test_a_tensor_without_values_shows_it():
    assert torch.empty(4, device="cuda").isnan().all()
    assert (torch.empty(4, dtype=torch.int32, device="cuda") == 0x5A5A5A5A).all()


@triton.jit
def group_kernel(addresses_ptr, out_ptr, BLOCK: tl.constexpr):
    address = tl.load(addresses_ptr + tl.program_id(0))
    place = tl.arange(0, BLOCK)
    values = tl.load(address.to(tl.pointer_type(tl.float32)) + place)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + place, values)


def test_addresses_that_are_taken_are_lent():
    tensors = [torch.full((64,), float(index), device="cuda") for index in range(3)]
    addresses = torch.tensor([tensor.data_ptr() for tensor in tensors], device="cuda")
    out = torch.zeros(3, 64, device="cuda")
    group_kernel[(3,)](addresses, out, BLOCK=64)
    assert torch.equal(out, torch.stack(tensors))
    # Of views that are gone by then: what they are of lives.
    whole = torch.randn(3, 64, device="cuda")
    addresses = torch.tensor([row.data_ptr() for row in whole], device="cuda")
    group_kernel[(3,)](addresses, out, BLOCK=64)
    assert torch.equal(out, whole)
    reference = whole.detach().data_ptr()
    addresses = torch.tensor([reference + 256 * index for index in range(3)], device="cuda")
    group_kernel[(3,)](addresses, out, BLOCK=64)


def test_addresses_of_what_is_gone():
    # One buffer, so that it is known how far apart they lie; each tensor is its own to torch.
    buffer, out = np.ones(8192, dtype=np.float32), torch.zeros(1, 64, device="cuda")
    near, gone = torch.from_numpy(buffer[:64]), torch.from_numpy(buffer[2000:2064])
    start, freed = near.data_ptr(), gone.data_ptr()
    assert freed - start == 8000
    del gone

    def message(address):
        with pytest.raises(KernelFault) as caught:
            group_kernel[(1,)](torch.tensor([address], device="cuda"), out, BLOCK=64)
        return str(caught.value), caught.value.tensor

    text, tensor = message(freed)
    assert f"{freed:#x} is in the memory of a tensor that is gone: float32 of shape (64,)" in text and tensor is None
    text, tensor = message(start + 12000)
    assert f"{start + 12000:#x} is in the memory of no tensor" in text and tensor is None
    text, tensor = message(start + 260)
    assert (
        f"element 65 of the tensor at {start:#x}, float32 of shape (64,): 2 past its end" in text and tensor is not None
    )
    assert "in the memory of no argument, nor near one" in message(0x1234567890)[0]
    # A kernel that has seen it before.
    group_kernel[(1,)](torch.tensor([start], device="cuda"), out, BLOCK=64)
    del near
    text, tensor = message(start)
    assert "use after free in group_kernel" in text and f"byte 0 of the tensor at {start:#x}, 256 bytes long" in text


def test_there_is_a_device():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == (8, 0)
    properties = torch.cuda.get_device_properties("cuda")
    # Of an A100: 108 multiprocessors of 2048 threads, 65,536 registers and 164 KiB of shared memory.
    assert (properties.major, properties.minor, properties.multi_processor_count) == (8, 0, 108)
    assert (properties.max_threads_per_multi_processor, properties.regs_per_multiprocessor) == (2048, 65536)
    assert (properties.shared_memory_per_multiprocessor, properties.shared_memory_per_block) == (164 << 10, 48 << 10)
    assert properties.shared_memory_per_block_optin == 163 << 10
    assert properties.warp_size == 32 and properties.name == torch.cuda.get_device_name(0)
    with pytest.raises(RuntimeError, match="one device"):
        torch.cuda.set_device(1)
    with pytest.raises(RuntimeError, match="one device"):
        torch.zeros(3, device="cuda:1")
    assert torch.zeros(3, device=torch.cuda.current_device()).is_cuda
    if hasattr(torch, "accelerator"):
        assert torch.accelerator.is_available()
        assert torch.zeros(3, device=torch.accelerator.current_accelerator()).is_cuda


def test_work_is_done_when_a_call_returns():
    x = torch.zeros(100, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() is stream
        begun.record()
        add_one_kernel[(1,)](x, 100, BLOCK=128)
        ended.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(stream)
    assert begun.query() and begun.elapsed_time(ended) > 0
    ended.synchronize()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with torch.cuda.device(x.device), torch.cuda.device_of(x):
        assert x.tolist() == [1] * 100
    with pytest.raises(ValueError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(ended)
    with pytest.raises(NotImplementedError, match="CUDAGraph is not there .* call the function without a graph"):
        torch.cuda.CUDAGraph()


def test_generators():
    first = torch.Generator(device="cuda").manual_seed(3)
    assert first.device == torch.device("cuda", 0) and isinstance(first, torch.Generator)
    again = torch.Generator(device="cuda").manual_seed(3)
    x, y = (torch.randn(5, device="cuda", generator=generator) for generator in (first, again))
    assert x.is_cuda and torch.equal(x, y)
    assert not torch.equal(x, torch.randn(5, device="cuda", generator=first))
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.Generator().device == torch.device("cpu")
    # A generator belongs to its device, as on a GPU.
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.randn(5, device="cuda", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randn(5, generator=first)


def test_seeds():
    torch.manual_seed(5)
    x = torch.randn(3, device="cuda")
    torch.cuda.manual_seed_all(5)
    assert torch.equal(torch.randn(3, device="cuda"), x)
    state = torch.cuda.get_rng_state()
    y = torch.randn(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.randn(3, device="cuda"), y)
    with torch.random.fork_rng():
        torch.randn(3)


def test_memory_is_counted():
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.zeros(1000, device="cuda")
    view = x[10:]
    assert torch.cuda.memory_allocated() - before == 4000
    del x, view
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4000
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def test_training_code_runs():
    layer = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Dropout(0.5)).cuda()
    optimiser = torch.optim.AdamW(layer.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    with torch.autocast("cuda", enabled=False):
        loss = layer(torch.randn(2, 8, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()
    optimiser.zero_grad(set_to_none=True)


def test_what_is_saved_is_loaded_where_it_was():
    layer = torch.nn.Linear(3, 2).cuda()
    file = io.BytesIO()
    torch.save({"layer": layer.state_dict(), "x": torch.ones(3)}, file)
    for location, is_cuda in ((None, (True, False)), ("cuda", (True, True)), ("cpu", (False, False))):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert (loaded["layer"]["weight"].is_cuda, loaded["x"].is_cuda) == is_cuda
        assert torch.equal(loaded["layer"]["weight"].cpu(), layer.weight.cpu())


def test_values_leave_the_device_by_a_copy():
    """What CUDA's torch says of `numpy()`."""
    x = torch.ones(2, 3, device="cuda")
    for ask in (lambda: x.numpy(), lambda: np.asarray(x), lambda: x.t().numpy(force=False)):
        with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
            ask()
    assert x.cpu().numpy().sum() == 6 and x.numpy(force=True).sum() == 6
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]] and float(x.sum()) == 6
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.is_cuda and torch.equal(copied, x)
    with pytest.raises(AssertionError, match="Greatest absolute difference: 1.0"):
        torch.testing.assert_close(x, x + 1)


def test_where_a_tensor_lies_is_shown():
    x = torch.ones(2, device="cuda")
    assert repr(x) == str(x) == f"{x}" == "tensor([1., 1.], device='cuda:0')"
    assert repr(x.half()) == "tensor([1., 1.], device='cuda:0', dtype=torch.float16)"
    assert repr(torch.nn.Parameter(x)).endswith("tensor([1., 1.], device='cuda:0', requires_grad=True)")
    assert f"{x.sum():.2f}" == "2.00"
    assert repr(x.cpu()) == repr(torch.ones(2)) == "tensor([1., 1.])"


def test_types_by_their_old_names():
    x = torch.cuda.FloatTensor([1, 2])
    assert x.is_cuda and x.type() == "torch.cuda.FloatTensor" and x.tolist() == [1, 2]
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.cuda.HalfTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert torch.cuda.LongTensor(2, 3).shape == torch.cuda.LongTensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.cuda.ByteTensor().shape == (0,)
    shares = torch.cuda.FloatTensor(x)
    shares += 1
    assert x.tolist() == [2, 3]
    with pytest.raises(TypeError, match="expected torch.cuda.LongTensor .got torch.cuda.FloatTensor."):
        torch.cuda.LongTensor(x)
    for kind in ("torch.cuda.HalfTensor", torch.cuda.HalfTensor):
        for y in (x.type(kind), x.cpu().type(kind)):
            assert y.is_cuda and y.dtype is torch.float16
    assert not x.type(torch.FloatTensor).is_cuda and x.type(torch.float16).is_cuda
    assert x.cpu().type("torch.IntTensor").type() == "torch.IntTensor"
    with pytest.raises(KernelFault, match="read of memory that nothing wrote"):
        add_one_kernel[(1,)](torch.cuda.FloatTensor(64), 64, BLOCK=64)


def test_the_default_type():
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        assert torch.ones(2).type() == "torch.cuda.DoubleTensor"
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(2).type() == "torch.FloatTensor"


def test_afterwards_torch_is_as_it_was():
    from gpuemu.triton import deactivate

    served = torch.cuda.is_available, torch.cuda.Stream, torch.Generator
    deactivate()
    try:
        assert not {torch.cuda.is_available, torch.cuda.Stream, torch.Generator} & set(served)
        assert torch.cuda.is_available.__module__ == "torch.cuda" and torch.Generator is torch._C.Generator
    finally:
        from gpuemu.triton import activate

        activate(torch_cuda=True)


IN_PLACE = """
[[ops]]
name = "relu"
reference = "relu"
[ops.schema]
dims = { N = [1, 2, 257] }
inputs = { x = { dims = ["N"], inout = true } }
"""


def test_torch_writes_in_place_into_reversed_views() -> None:
    def check(function: Callable[..., Any]) -> gpuemu.Verdict:
        asked: dict[str, Any] = {"dtypes": ["float32"], "strategies": ["layout"], "arrays": "torch"}
        return gpuemu.check(function, "relu", contract=IN_PLACE, **asked)

    def in_place(x: Any) -> None:
        x.relu_()

    def half(x: Any) -> None:
        x[: x.numel() // 2].relu_()

    verdict = check(in_place)
    assert verdict, verdict.failures[0].report
    assert check(torch.relu)
    assert not check(half)
