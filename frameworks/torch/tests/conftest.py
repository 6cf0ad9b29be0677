"""What the tests share: they run on the device that TENON_DEVICE names (default: cpu), from fresh counters."""

import gc
import os
import zlib

import pytest
import torch

import tenon_torch

torch.set_num_threads(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "left_to_the_cpu: ops of the device may run on the CPU")


def pytest_collection_modifyitems(config, items):
    """Where several lists of parameters are multiplied, each value of each is taken with some values of the others; all with TENON_FULL."""
    if "TENON_FULL" in os.environ:
        return
    seen, left = set(), []
    for item in sorted(items, key=lambda each: zlib.crc32(each.name.encode())):
        if sum(1 for _ in item.iter_markers("parametrize")) > 1:
            values = {(item.path, item.originalname, name, repr(value)) for name, value in item.callspec.params.items()}
            if values <= seen:
                left.append(item)
            seen |= values
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish():
    """What is imported stays: to look for cycles of objects in it takes a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


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
def compiled(monkeypatch, device):
    """torch.compile for the backend tenon; an op left to PyTorch is an error, and on template a step left to the host."""

    def compile(function, **options):
        return torch.compile(function, backend="tenon", options={"fallback": "error", "strict": device == "template", **options})

    return compile
