"""Models train under torch_xla on Tenon's plug-in as they do in PyTorch: a host framework's second opinion on the plug-in."""

import copy

import pytest
import torch
import torch.nn.functional as F
from models import MODELS, losses
from torch import nn

STEPS = 5


def test_compiled_inference(device, ran):
    """torch.compile for torch_xla's backend. The first test of the process: torch_xla crashes in it after steps of training, with XLA's own
    client for CPUs too."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.LazyLinear(10)).eval()
    x = torch.randn(2, 1, 8, 8)
    expected = model(x)
    compiled = torch.compile(model.to(device), backend="openxla")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x.to(device)).cpu(), expected, rtol=1e-5, atol=1e-6)
    assert ran()[1] >= 1


# torch_xla refuses the weights of a GRU, with XLA's own client for CPUs too.
NAMES = [name for name in MODELS if name != "gru"]
# Ops that torch_xla leaves to PyTorch's CPU.
ON_THE_CPU = {"unet": ["aten::upsample_nearest2d_backward"]}


@pytest.mark.parametrize("name", NAMES)
def test_training(name, device, ran, monkeypatch):
    """Losses of five steps of Adam are the CPU's within 1e-5; every step ran as a program of the plug-in."""
    monkeypatch.setattr(F, "elu", F.silu)  # torch_xla's gradient of ELU is another function's, with XLA's own client too.
    make, batch = MODELS[name]
    ours = make()
    data = [(x := batch(), torch.randint(0, 10, (x.shape[0],))) for _ in range(STEPS)]
    theirs = copy.deepcopy(ours)
    expected = losses(theirs, theirs, data, torch.optim.Adam(theirs.parameters(), 1e-3))
    ours = ours.to(device)
    found = losses(ours, ours, [(x.to(device), y.to(device)) for x, y in data], torch.optim.Adam(ours.parameters(), 1e-3))
    assert found == pytest.approx(expected, rel=1e-5)
    compiled, executed, on_the_cpu = ran()
    assert compiled >= 1 and executed >= STEPS
    assert on_the_cpu == ON_THE_CPU.get(name, [])


def test_dropout_draws_on_the_device(device, ran):
    x = torch.ones(200, 100, device=device)
    kept = F.dropout(x, 0.25).cpu()
    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert (kept != 0).float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert ran()[1] >= 1


FUNCTIONS = {
    "sort": lambda x: torch.sort(x, stable=True),
    "topk": lambda x: torch.topk(x, 3),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + 8 * torch.eye(8, device=x.device)),
    "singular values": torch.linalg.svdvals,
    "inverse": torch.linalg.inv,
    "erf": torch.erf,
    "scatter": lambda x: x.scatter_add(1, torch.arange(8, device=x.device).flip(0).expand(8, 8), x),
    "maximum pool": lambda x: F.max_pool1d(x, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, device, ran):
    x = torch.randn(8, 8)
    expected = FUNCTIONS[name](x)
    found = FUNCTIONS[name](x.to(device))
    for ours, theirs in zip(found if isinstance(found, tuple) else (found,), expected if isinstance(expected, tuple) else (expected,)):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2e-5, atol=2e-5)
    assert ran()[1] >= 1
