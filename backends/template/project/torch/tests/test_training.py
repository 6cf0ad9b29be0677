"""A small network learns on the device, compiled and op by op, and on PyTorch's CPU beside it: all must come to the same place.

    python torch/tests/test_training.py           # prints the losses; pytest runs it too (the package is installed)
"""

import copy

import torch
from torch import nn

DEVICE = "template"
STEPS = 50


def data():
    """Points within and around a circle."""
    points = torch.rand(128, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return points, (points.square().sum(1) < 0.5).long()


def initial():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))


def train(model, forward, points, labels):
    """The loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(points), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training():
    import tenon_torch

    points, labels = data()
    host = initial()
    compiled, there = copy.deepcopy(host), copy.deepcopy(host).to(DEVICE)
    expected = train(host, host, points, labels)
    found = {
        "compiled": train(compiled, torch.compile(compiled, backend=DEVICE), points, labels),
        "op by op": train(there, there, points.to(DEVICE), labels.to(DEVICE)),
    }
    assert tenon_torch.counters.calls > 2 * STEPS and not tenon_torch.counters.fallbacks, tenon_torch.counters
    for name, losses in found.items():
        print(f"{DEVICE}, {name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; cpu: {expected[0]:.4f} -> {expected[-1]:.4f}")
        torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-2, atol=1e-3)
    assert expected[-1] < 0.7 * expected[0], expected


if __name__ == "__main__":
    test_training()
