#!/usr/bin/env python3
"""A classifier of digits in PyTorch, trained on a device of Tenon and by PyTorch itself.

    frameworks/torch/.venv/bin/python samples/frameworks/with_torch.py --device cpu
"""

import sys
import time

import torch
from torch import nn

import digits


class Classifier(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1), nn.Linear(128, 10)
        with torch.no_grad():
            for layer, number in ((self.first, "1"), (self.second, "2")):
                layer.weight.copy_(torch.from_numpy(weights["filter" + number]).permute(3, 2, 0, 1))
                layer.bias.copy_(torch.from_numpy(weights["bias" + number]))
            self.last.weight.copy_(torch.from_numpy(weights["matrix"]).T)
            self.last.bias.copy_(torch.from_numpy(weights["bias3"]))

    def forward(self, x):
        for layer in (self.first, self.second):
            x = nn.functional.avg_pool2d(layer(x).tanh(), 2)
        return self.last(x.permute(0, 2, 3, 1).flatten(1))  # The matrix has the channels last.

    def weights(self):
        layers = {"filter1": self.first.weight.permute(2, 3, 1, 0), "bias1": self.first.bias, "filter2": self.second.weight.permute(2, 3, 1, 0),
                  "bias2": self.second.bias, "matrix": self.last.weight.T, "bias3": self.last.bias}
        return {name: each.detach().contiguous().numpy() for name, each in layers.items()}


def train(weights, steps, device):
    """`device` None: PyTorch itself, op by op."""
    model = Classifier(weights)
    forward = model if device is None else torch.compile(model, backend="tenon", options={"device": device, "fallback": "error"})
    optimizer = torch.optim.SGD(model.parameters(), digits.RATE)
    losses, times = [], []
    for x, y in digits.batches(steps, f"PyTorch on {device or 'the CPU'}"):
        x, y = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(y).long()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    if device is not None:
        import tenon_torch

        assert tenon_torch.counters.calls >= 2 * steps, tenon_torch.counters
    with torch.no_grad():
        accuracy = digits.right(forward(torch.from_numpy(digits.test_data()[0]).permute(0, 3, 1, 2).contiguous()))
    return losses, digits.median_step(times), accuracy, model.weights()


if __name__ == "__main__":
    sys.exit(digits.train(__doc__.splitlines()[0], "PyTorch", train, train))
