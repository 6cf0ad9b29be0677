"""What the tests share: they run on the device that TENON_DEVICE names (default: cpu), from fresh counters."""

import os

import pytest
import torch

import tenon_torch

torch.set_num_threads(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "left_to_the_cpu: ops of the device may run on the CPU")


@pytest.fixture
def device() -> str:
    return os.environ.get("TENON_DEVICE", "cpu")


@pytest.fixture(autouse=True)
def fresh():
    """Nothing compiled, nothing counted, one seed."""
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    tenon_torch.counters.reset()
    torch.manual_seed(0)
    yield


@pytest.fixture
def compiled(monkeypatch):
    """torch.compile for the backend tenon; an op left to PyTorch is an error."""

    def compile(function, **options):
        return torch.compile(function, backend="tenon", options={"fallback": "error", **options})

    return compile
