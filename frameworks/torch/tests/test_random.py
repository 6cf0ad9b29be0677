"""Random numbers: by the seed of PyTorch's generator, with PyTorch's distributions."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import tenon_torch


def test_dropout(compiled):
    """The share of zeros, the scale of the rest, and the same elements in the gradient."""
    x = torch.ones(400, 100, requires_grad=True)
    y = compiled(nn.Dropout(0.3))(x)
    y.sum().backward()
    kept = y.detach() != 0
    assert 0.68 < kept.float().mean() < 0.72
    torch.testing.assert_close(y.detach()[kept], torch.full((int(kept.sum()),), 1 / 0.7))
    assert torch.equal(x.grad, y.detach())


def test_seed(compiled):
    """The generator's seed decides; each call draws anew; ops of one program draw apart."""
    two = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x)))
    x = torch.zeros(64)
    torch.manual_seed(7)
    first, second = two(x), two(x)
    torch.manual_seed(7)
    again = two(x)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[0], first[1])
    assert tenon_torch.counters.calls == 3


DRAWS = {  # How it is drawn, the mean, the standard deviation, and the limits.
    "rand": (lambda: torch.rand(100, 200), 0.5, 12 ** -0.5, (0, 1)),
    "randn": (lambda: torch.randn(100, 200), 0, 1, (-7, 7)),
    "randn bf16": (lambda: torch.randn(100, 200, dtype=torch.bfloat16), 0, 1, (-7, 7)),
    "rand f64": (lambda: torch.rand(100, 200, dtype=torch.float64), 0.5, 12 ** -0.5, (0, 1)),
    "randint": (lambda: torch.randint(-3, 5, (100, 200)), 0.5, 2.29, (-3, 4)),
    "bernoulli": (lambda: torch.bernoulli(torch.full((100, 200), 0.2)), 0.2, 0.4, (0, 1)),
    "exponential": (lambda: torch.empty(100, 200).exponential_(2.0), 0.5, 0.5, (0, 12)),
    "normal": (lambda: torch.empty(100, 200).normal_(3.0, 2.0), 3, 2, (-12, 18)),
    "uniform": (lambda: torch.empty(100, 200).uniform_(-2, 4), 1, 3 ** 0.5, (-2, 4)),
    "randperm": (lambda: torch.randperm(20000), 9999.5, 5773.6, (0, 19999)),
}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 65537])
def test_permutations(count, compiled):
    """Every number once, in another order at each call."""
    draw = compiled(lambda: torch.randperm(count))
    first, second = draw(), draw()
    assert torch.equal(first.sort().values, torch.arange(count)) and torch.equal(second.sort().values, torch.arange(count))
    assert count < 1000 or not torch.equal(first, second)


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name, compiled):
    draw, mean, deviation, (low, high) = DRAWS[name]
    numbers = compiled(draw)().double()
    assert abs(numbers.mean() - mean) < 0.04 * max(1, deviation)
    assert abs(numbers.std() - deviation) < 0.04 * deviation
    assert low <= numbers.min() and numbers.max() <= high
    assert not tenon_torch.counters.fallbacks


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_layers_that_are_computed_again(share, compiled):
    """torch.utils.checkpoint: the backward pass draws what the forward pass drew, also at a second size, and the pass goes on behind it."""
    weight = torch.randn(8, 8)

    def layer(x):
        return F.dropout(torch.tanh(x @ weight), share) * torch.bernoulli(torch.full_like(x, 0.7 if share else 1.0))

    run = compiled(lambda x: checkpoint(layer, x, use_reentrant=False).square().sum())
    for rows in (3, 5, 5):
        x, by = torch.randn(rows, 8, dtype=torch.float64), torch.randn(rows, 8, dtype=torch.float64)
        weight = weight.double()
        x.requires_grad_()
        values = []
        for step in (0.0, 1e-5, -1e-5):
            torch.manual_seed(rows)
            values.append(run(x + step * by))
        gradient, = torch.autograd.grad(values[0], x)
        torch.testing.assert_close((gradient * by).sum(), (values[1] - values[2]) / 2e-5, rtol=1e-5, atol=1e-6)
    assert not tenon_torch.counters.fallbacks and tenon_torch.counters.calls > 9


PARTLY = {  # With poisson, which has no lowering: side by side, and one after the other.
    "beside": lambda x: F.dropout(x, 0.5) * (1 + torch.poisson(x.detach().abs() * 50 + 9)),
    "before": lambda x: F.dropout(torch.poisson(x.abs() * 50 + 9), 0.5) * x,
    "behind": lambda x: (1 + torch.poisson(F.dropout(x.detach().abs(), 0.5) * 50)) * F.dropout(x, 0.5),
}


@pytest.mark.parametrize("layer", PARTLY.values(), ids=PARTLY)
def test_layers_of_which_pytorch_draws_a_part(layer):
    """States of both generators in one layer."""
    x = torch.randn(6, 8, requires_grad=True)
    found = torch.compile(lambda x: checkpoint(layer, x, use_reentrant=False), backend="tenon")(x)
    gradient, = torch.autograd.grad(found.sum(), x)
    assert torch.equal(gradient != 0, found != 0) and 0 < (found != 0).sum() < found.numel()
    assert tenon_torch.counters.fallbacks


@pytest.mark.parametrize("count, replacement", [(1, False), (1, True), (2, False), (3000, True)])
def test_multinomial(count, replacement, compiled):
    """The shares of the chances, which need not add up to 1; nothing of no chance; twice the same only with replacement."""
    chances = torch.tensor([[0.2, 0.4, 0.0, 1.4], [0.25, 0.25, 0.25, 0.25]])
    draw = compiled(lambda x: torch.multinomial(x, count, replacement))
    rows = [draw(chances) for _ in range(3000 // count)]
    assert rows[0].shape == (2, count) and rows[0].dtype == torch.int64
    if count == 2:
        assert all((each[:, 0] != each[:, 1]).all() for each in rows)
    first = torch.cat([each[:, :1] if count == 2 else each for each in rows], 1)
    for row, wanted in zip(first, chances / chances.sum(1, True)):
        shares = torch.bincount(row, minlength=4) / row.numel()
        assert (shares - wanted).abs().max() < 0.05 and (shares[wanted == 0] == 0).all()
    assert not tenon_torch.counters.fallbacks


def test_rrelu(compiled):
    """Random slopes of negative elements, which the gradient has too; the mean slope outside of training."""
    x = torch.randn(2000, requires_grad=True)
    y = compiled(lambda x: F.rrelu(x, 0.1, 0.3, training=True))(x)
    y.sum().backward()
    slope = (y / x).detach()
    assert (slope[x >= 0] == 1).all() and 0.0999 < slope[x < 0].min() < 0.11 and 0.29 < slope[x < 0].max() < 0.3001
    torch.testing.assert_close(x.grad, slope)
    torch.testing.assert_close(compiled(lambda x: F.rrelu(x, 0.1, 0.3))(x), F.rrelu(x, 0.1, 0.3))


@pytest.mark.parametrize("size, window, out", [((12, 13), (2, 3), (5, 4)), ((9, 8), (3, 3), (1, 6)), ((9, 8, 7), (2, 2, 3), (4, 3, 2))])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_fractional_pools(size, window, out, batch, compiled):
    """Values, places and gradients of eager mode, by the same samples."""
    pool = F.fractional_max_pool2d if len(size) == 2 else F.fractional_max_pool3d
    x, samples = torch.randn(*batch, 4, *size, requires_grad=True), torch.rand(batch[0] + 1 if batch else 1, 4, len(size))  # One more than are needed.

    def function(x):
        return pool(x, window, output_size=out, _random_samples=samples, return_indices=True)

    found, expected = compiled(function)(x), function(x)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
    gradients = [torch.autograd.grad(each[0].square().sum(), x)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)
    assert pool(x, window, output_size=out).shape == compiled(lambda x: pool(x, window, output_size=out))(x).shape


def test_numbers_of_eager_mode():
    """random="torch": PyTorch draws, and the draws are counted by name."""
    model, x = nn.Dropout(0.5), torch.ones(1000)
    forward = torch.compile(model, backend="tenon", options={"random": "torch"})
    torch.manual_seed(3)
    found = forward(x) * 2
    torch.manual_seed(3)
    assert torch.equal(found, model(x) * 2)
    assert set(tenon_torch.counters.fallbacks) == {"aten.native_dropout.default"}
