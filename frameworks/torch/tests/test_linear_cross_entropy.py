"""The loss of a linear layer by batches, whose gradients are made in the same pass: as one loop, with the results of the function as a whole."""

import pytest
import torch
from torch.nn import functional as F
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

import tenon_torch

# Rows, whole batches or not; classes; what else is given.
CASES = {
    "whole batches": (32, dict(reduction="mean")), "a part of a batch": (27, dict(reduction="sum")), "fewer than a batch": (5, dict(reduction="mean")),
    "weights": (30, dict(reduction="mean", weight=True)), "ignored": (30, dict(reduction="mean", ignore_index=3)),
    "each row's": (30, dict(reduction="none", weight=True, ignore_index=3)), "no bias": (30, dict(reduction="mean", linear_bias=False)),
}


def loss_of(words, options):
    words = dict(words)
    weight, with_bias = torch.rand(40, dtype=torch.float64) if words.pop("weight", False) else None, words.pop("linear_bias", True)

    def function(x, matrix, bias, target):
        return F.linear_cross_entropy(x, matrix, target, linear_bias=bias if with_bias else None, weight=weight, options=options, **words)

    return function


@pytest.mark.parametrize("trained", [(True, True, True), (True, False, False), (False, True, False), (False, False, False)])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients(name, trained, compiled):
    rows, words = CASES[name]
    target = torch.randint(0, 40, (rows,))
    target[1] = 3
    torch.manual_seed(1)
    whole = loss_of(words, None)
    torch.manual_seed(1)
    by_batches = compiled(loss_of(words, LinearCrossEntropyOptions(batch_chunk_size=8, chunking_method=None, allow_retain_graph=True)))
    given = [torch.randn(*shape, dtype=torch.float64).requires_grad_(each) for shape, each in zip(((rows, 6), (40, 6), (40,)), trained)]
    found, expected = by_batches(*given, target), whole(*given, target)
    torch.testing.assert_close(found, expected)
    inputs = [each for each in given if each.requires_grad]
    if inputs:
        for left, right in zip(*(torch.autograd.grad(each.square().sum(), inputs, allow_unused=True) for each in (found, expected))):
            assert (left is None) == (right is None)
            if left is not None:
                torch.testing.assert_close(left, right)
    assert tenon_torch.counters.calls >= 1 and not tenon_torch.counters.fallbacks


def test_short_floats(compiled):
    """bf16: products are rounded to it, as in eager mode; losses and the sum of the gradients by batches are in f32."""
    given = [torch.randn(64, 16), torch.randn(100, 16), torch.randn(100)]
    target = torch.randint(0, 100, (64,))
    options = LinearCrossEntropyOptions(batch_chunk_size=16, chunking_method=None, allow_retain_graph=True)
    short = [each.bfloat16().requires_grad_() for each in given]
    wide = [each.detach().float().requires_grad_() for each in short]
    found = compiled(lambda x, w, b, t: F.linear_cross_entropy(x, w, t, linear_bias=b, options=options))(*short, target)
    expected = F.linear_cross_entropy(wide[0], wide[1], target, linear_bias=wide[2])
    torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=1e-2)
    for left, right in zip(torch.autograd.grad(found, short), torch.autograd.grad(expected, wide)):
        assert left.dtype == torch.bfloat16
        torch.testing.assert_close(left.float(), right, rtol=3e-2, atol=2e-3)
