"""What the tests share: torch_xla on Tenon's plug-in.

TENON_TEST_PLUGIN names the plug-in, TENON_DEVICE the device of Tenon (default: cpu). With XLA_STABLEHLO_COMPILE=1 torch_xla sends
programs as portable artifacts of StableHLO, without it as HLO protos."""

import os
import pathlib
import sys

os.environ["PJRT_DEVICE"] = "TENON"  # torch_xla reads it when it is imported.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "torch/tests"))  # models.py

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
from torch_xla.debug import metrics  # noqa: E402
from torch_xla.experimental import plugins  # noqa: E402


class Plugin(plugins.DevicePlugin):
    def library_path(self) -> str:
        return os.environ["TENON_TEST_PLUGIN"]


plugins.use_dynamic_plugins()
plugins.register_plugin("TENON", Plugin())
torch.set_num_threads(1)


@pytest.fixture
def device() -> torch.device:
    """torch_xla's device, from fresh metrics and one seed."""
    found = torch_xla.device()
    metrics.clear_all()
    torch.manual_seed(0)
    return found


@pytest.fixture
def ran():
    """The number of programs that the plug-in compiled and executed in the test, and the names of the ops that torch_xla left to PyTorch's CPU."""

    def counts() -> tuple[int, int, list[str]]:
        def times(name: str) -> int:
            found = metrics.metric_data(name)
            return found[0] if found else 0

        # `.item()` is counted there, too.
        return times("CompileTime"), times("ExecuteTime"), [op for op in metrics.executed_fallback_ops() if op != "aten::_local_scalar_dense"]

    return counts
