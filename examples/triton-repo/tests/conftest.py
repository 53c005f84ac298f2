import pytest


@pytest.fixture(autouse=True, scope="session")
def device():
    from gpuemu.triton import emulated

    with emulated(torch_cuda=True):
        yield
