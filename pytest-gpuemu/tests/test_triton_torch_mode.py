"""Torch code that asks for CUDA, served from the CPU by torch's function mode."""

import numpy as np
import pytest

triton = pytest.importorskip("triton")
torch = pytest.importorskip("torch")
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


@triton.jit
def add_one_kernel(x_ptr, count, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < count)
    tl.store(x_ptr + place, x + 1, mask=place < count)


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
        lambda x: x.numpy().fill(1),
        lambda x: fill_kernel[(1,)](x, 0, 64, BLOCK=64),
    ],
)
def test_what_somebody_wrote_is_read(write):
    x = torch.empty(64, device="cuda")
    write(x)
    add_one_kernel[(1,)](x, 64, BLOCK=64)


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
