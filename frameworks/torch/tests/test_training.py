"""Models train as in eager mode: losses of five steps, weights, no op left to PyTorch."""

import copy

import pytest
import torch
from torch import nn

import tenon_torch
from models import MODELS, losses


@pytest.fixture(autouse=True)
def recurrent_layers():
    # TorchDynamo leaves nn.LSTM and nn.GRU to eager mode by itself.
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.parametrize("name", MODELS)
def test_five_steps(name, compiled):
    make, batch = MODELS[name]
    eager = make()
    model = copy.deepcopy(eager)
    data = [(batch(), torch.randint(0, 10, (4,))) for _ in range(5)]
    expected = losses(eager, eager, data, torch.optim.SGD(eager.parameters(), 0.05, momentum=0.9))
    found = losses(model, compiled(model), data, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-6)
    for left, right in zip(model.state_dict().values(), eager.state_dict().values()):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
    assert tenon_torch.counters.programs >= 2 and tenon_torch.counters.calls == 10
    assert not tenon_torch.counters.fallbacks and not tenon_torch.counters.graph_breaks


@pytest.mark.parametrize("size,kernel,stride,padding,dilation", [
    (4, 3, 1, 1, 1), (4, 3, 2, 1, 1), (3, 3, 1, 2, 2), (4, 1, 2, 0, 1), (5, 4, 1, 0, 1)])
def test_gradients_of_convolutions_of_few_places(size, kernel, stride, padding, dilation, compiled):
    """They are products of matrices on a device with wide tiles (convolution-products)."""
    x = torch.randn(2, 40, size, size)
    w = torch.randn(96, 40, kernel, kernel) / 20
    results = []
    for wrap in (lambda f: f, compiled):
        def convolution(x, w):
            return nn.functional.conv2d(x, w, stride=stride, padding=padding, dilation=dilation)

        own = [each.clone().requires_grad_() for each in (x, w)]
        y = wrap(convolution)(*own)
        torch.sin(y.detach()).mul(y).sum().backward()
        results.append([y.detach(), *(each.grad for each in own)])
    for left, right in zip(*results):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=5e-5)
    assert tenon_torch.counters.programs == 2


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "adam": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-1),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1e-1),
    "nadam": lambda p: torch.optim.NAdam(p, 1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name, compiled):
    """A compiled step is one program for all parameters, which are changed in place."""
    eager = [torch.randn(50, 20, requires_grad=True), torch.randn(30, requires_grad=True)]
    ours = [each.detach().clone().requires_grad_() for each in eager]
    memory = [each.data_ptr() for each in ours]
    for parameters, wrap in ((eager, lambda step: step), (ours, compiled)):
        optimizer = OPTIMIZERS[name](parameters)
        step = wrap(optimizer.step)
        for i in range(3):
            for each in parameters:
                each.grad = torch.sin(3 * each.detach() + i)
            step()
    for left, right in zip(ours, eager):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5)
    assert memory == [each.data_ptr() for each in ours]
    assert tenon_torch.counters.calls >= 3 and not tenon_torch.counters.fallbacks


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype, compiled):
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
    x = torch.randn(16, 64)
    with torch.autocast("cpu", dtype=dtype):
        expected, found = model(x), compiled(model)(x)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    gradients = [torch.autograd.grad(each.float().square().sum(), list(model.parameters())) for each in (found, expected)]
    for left, right in zip(*gradients):
        torch.testing.assert_close(left, right, rtol=5e-2, atol=5e-2)


def test_channels_last(compiled):
    """Results and gradients have the strides of eager mode."""
    model = nn.Conv2d(3, 8, 3, padding=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    expected, found = model(x), compiled(model)(x)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each.square().sum(), list(model.parameters())) for each in (found, expected)]
    for left, right in zip(*gradients):
        assert left.stride() == right.stride()
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)


def test_batch_norm_statistics(compiled):
    eager = nn.BatchNorm1d(5)
    model = copy.deepcopy(eager)
    forward = compiled(model)
    for _ in range(3):
        x = torch.randn(16, 5)
        torch.testing.assert_close(forward(x), eager(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.state_dict(), eager.state_dict())
    model.eval(), eager.eval()
    torch.testing.assert_close(compiled(model)(x), eager(x))
