"""Recurrent layers over sequences are loops: values and gradients, programs that do not grow with the length, and what stays PyTorch's."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import tenon
import tenon_torch
from models import losses
from tenon_torch import recurrent

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": lambda *sizes, **words: nn.RNN(*sizes, nonlinearity="relu", **words)}
WORDS = {"plain": {}, "both ways": {"num_layers": 2, "bidirectional": True}, "batch first": {"num_layers": 2, "batch_first": True, "bias": False}}


@pytest.fixture(autouse=True)
def recurrent_layers():
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.fixture
def texts(monkeypatch) -> list[str]:
    """The programs that are lowered."""
    from tenon_torch import program

    found, lower = [], program.lower

    def spied(*given, **words):
        lowered = lower(*given, **words)
        found.append(lowered.text)
        return lowered

    monkeypatch.setattr(program, "lower", spied)
    return found


def flat(result) -> list[torch.Tensor]:
    output, state = result
    return [output, *(state if isinstance(state, tuple) else [state])]


def values_and_gradients(forward, layer, x, *state):
    """Of a sum in which each result has weights of its own."""
    inputs = [each.clone().requires_grad_() for each in (x, *state)]
    given = inputs[1:] if len(state) < 2 else [tuple(inputs[1:])]
    results = flat(forward(inputs[0], *given))
    total = sum((each.float() * torch.linspace(0.1, 1, each.numel()).reshape(each.shape)).sum() for each in results)
    return results, torch.autograd.grad(total, inputs + list(layer.parameters()))


def compare(layer, compiled, x, *state, tolerance: float = 1e-5) -> None:
    expected = values_and_gradients(layer, layer, x, *state)
    own = copy.deepcopy(layer)
    found = values_and_gradients(compiled(own), own, x, *state)
    for left, right in zip(expected, found, strict=True):
        for a, b in zip(left, right, strict=True):
            assert a.stride() == b.stride()
            torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance * max(1, a.abs().max().item()))


def loops_of(texts: list[str]) -> int:
    return sum(text.count('"stablehlo.while"') for text in texts)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(kind, words, compiled, texts):
    layer = KINDS[kind](6, 8, **WORDS[words])
    compare(layer, compiled, torch.randn(5, 3, 6))
    # One loop a layer and direction, forward and backward.
    assert loops_of(texts) == 2 * layer.num_layers * (2 if layer.bidirectional else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_given(kind, compiled, texts):
    layer = KINDS[kind](6, 8, num_layers=2)
    states = [torch.randn(2, 3, 8) for _ in range(2 if kind == "lstm" else 1)]
    compare(layer, compiled, torch.randn(5, 3, 6), *states)
    assert loops_of(texts) == 4


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("kind", KINDS)
def test_element_types(kind, dtype, tolerance, compiled, texts):
    layer = KINDS[kind](6, 8).to(dtype)
    compare(layer, compiled, torch.randn(5, 3, 6, dtype=dtype), tolerance=tolerance)
    assert loops_of(texts) == 2


def test_one_sequence_without_a_batch(compiled, texts):
    layer = nn.GRU(6, 8)
    compare(layer, compiled, torch.randn(5, 6))
    assert loops_of(texts) == 2


def test_dropout_between_layers(compiled, texts):
    """All is dropped: the second layer sees zeros, but for its state."""
    compare(nn.LSTM(6, 8, num_layers=2, dropout=1.0), compiled, torch.randn(5, 3, 6))
    assert loops_of(texts) == 4
    layer = nn.GRU(6, 8, num_layers=2, dropout=0.5)
    forward, x = compiled(layer), torch.randn(5, 3, 6)
    assert not torch.equal(forward(x)[0], forward(x)[0])
    layer.eval()
    torch.testing.assert_close(forward(x)[0], layer(x)[0])


def test_inference_keeps_nothing(compiled, texts):
    layer, x = nn.LSTM(6, 8).eval(), torch.randn(5, 3, 6)
    with torch.no_grad():
        for found, expected in zip(flat(compiled(layer)(x)), flat(layer(x)), strict=True):
            torch.testing.assert_close(found, expected)
    # What the loop carries: the number of the turn, the state, and the outputs alone.
    [carried] = [line for line in texts[0].splitlines() if '"stablehlo.while"' in line]
    assert carried.count("%") == 1 + 4


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_programs_do_not_grow_with_the_length(kind, compiled, texts):
    sizes = []
    for length in (3, 300):
        torch._dynamo.reset()
        texts.clear()
        own = KINDS[kind](6, 8)
        compiled(own)(torch.randn(length, 2, 6))[0].sum().backward()
        sizes.append([len(text) for text in texts])
    assert len(sizes[0]) == len(sizes[1]) == 2
    assert all(long < 1.05 * short for short, long in zip(*sizes))


def test_lengths_that_change(compiled):
    """One graph, a program for each length."""
    layer = nn.LSTM(6, 8)
    forward = compiled(layer)
    for length in (4, 7, 5):
        x = torch.randn(length, 3, 6)
        torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad():
            torch.testing.assert_close(forward(x)[0], layer(x)[0])
    assert tenon_torch.counters.graphs == 1 and tenon_torch.counters.programs == 3


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers, self.last = kind(6, 16, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(32, 5)

    def forward(self, x):
        return self.last(self.layers(x)[0].mean(1))


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh"])
def test_five_steps(kind, compiled):
    eager = Tagger(KINDS[kind])
    model = copy.deepcopy(eager)
    data = [(torch.randn(4, 40, 6), torch.randint(0, 5, (4,))) for _ in range(5)]
    expected = losses(eager, eager, data, torch.optim.Adam(eager.parameters(), 0.01))
    found = losses(model, compiled(model), data, torch.optim.Adam(model.parameters(), 0.01))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not tenon_torch.counters.fallbacks and not tenon_torch.counters.graph_breaks


def test_left_to_pytorch(compiled, texts):
    """Projections and autocast: laid out step by step, as PyTorch decomposes them."""
    compare(nn.LSTM(6, 8, proj_size=4), compiled, torch.randn(5, 3, 6))
    layer, x = nn.GRU(6, 8), torch.randn(5, 3, 6)

    @compiled
    def forward(x):
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)[0]

    with torch.autocast("cpu", torch.bfloat16):
        expected = layer(x)[0]
    torch.testing.assert_close(forward(x).float(), expected.float(), rtol=2e-2, atol=2e-2)
    assert texts and loops_of(texts) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_one_parameter_learns(kind, compiled, texts):
    """Each parameter has its gradient though all others are frozen."""
    layer, x = KINDS[kind](6, 8), torch.randn(5, 3, 6)
    for name, parameter in layer.named_parameters():
        for other in layer.parameters():
            other.requires_grad_(other is parameter)
        own = copy.deepcopy(layer)
        layer(x)[0].pow(2).sum().backward()
        compiled(own)(x)[0].pow(2).sum().backward()
        torch.testing.assert_close(dict(own.named_parameters())[name].grad, parameter.grad, rtol=1e-5, atol=1e-5)
    assert loops_of(texts) > 0


def test_gradients_of_nan(compiled, texts):
    """relu lets the gradient of NaN through, as PyTorch's does."""
    layer, x = nn.RNN(3, 4, nonlinearity="relu"), torch.randn(4, 2, 3)
    x[1, 0, 0] = torch.nan
    gradients = []
    for each in (layer, compiled(layer)):
        given = x.clone().requires_grad_()
        gradients.append(torch.autograd.grad(each(given)[0].sum(), given)[0])
    torch.testing.assert_close(gradients[1], gradients[0], equal_nan=True)
    assert loops_of(texts) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_of_functions(kind, compiled):
    """torch.func's gradients are PyTorch's own: the layer is laid out."""
    layer, x = KINDS[kind](3, 4), torch.randn(4, 2, 3)

    def gradient(x):
        return torch.func.grad(lambda x: layer(x)[0].pow(2).sum())(x)

    torch.testing.assert_close(compiled(gradient)(x), gradient(x), rtol=1e-5, atol=1e-5)


def test_other_backends_are_as_before():
    """Graphs of others have PyTorch's ops alone."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    seen = []

    def compile_graph(module, _):
        seen.extend(str(node.target) for node in module.graph.nodes)
        return make_boxed_func(module.forward)

    layer, x = nn.LSTM(6, 8, num_layers=2), torch.randn(5, 3, 6)
    own, backend = copy.deepcopy(layer), aot_autograd(fw_compiler=compile_graph)
    for left, right in zip(values_and_gradients(layer, layer, x), values_and_gradients(torch.compile(own, backend=backend), own, x)):
        torch.testing.assert_close(left, right)
    assert len(seen) > 100 and not any("tenon_torch" in each for each in seen)


def test_gradients_by_differences():
    """The layers without a compiler: their steps run in PyTorch."""
    for kind, words in (("lstm", {"num_layers": 2, "bidirectional": True}), ("gru", {"bidirectional": True}), ("rnn_tanh", {})):
        layer = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN}[kind](2, 3, **words).double()
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        state = [torch.randn(count, 2, 3).double().requires_grad_() for _ in range(2 if kind == "lstm" else 1)]
        x = torch.randn(4, 2, 2).double().requires_grad_()

        def function(x, *rest):
            state, weights = list(rest[:len(rest) - len(layer._flat_weights)]), list(rest[len(rest) - len(layer._flat_weights):])
            return recurrent._layers(kind, x, state, weights, True, layer.num_layers, 0.0, True, layer.bidirectional, False)

        given = (x, *state, *(each.detach().clone().requires_grad_() for each in layer._flat_weights))
        torch.testing.assert_close(list(function(*given)), flat(layer(x, tuple(state) if kind == "lstm" else state[0])))
        assert torch.autograd.gradcheck(function, given)


def test_exported_programs(device, tmp_path):
    layer, x = nn.LSTM(6, 8, num_layers=2, batch_first=True).eval(), torch.randn(3, 50, 6)
    tenon_torch.export(torch.export.export(layer, (x,)), tmp_path / "lstm.mlir")
    text = (tmp_path / "lstm.mlir").read_text()
    assert loops_of([text]) == 2
    found = tenon.Client(device).compile(text).run([x], like=torch.Tensor)
    for left, right in zip(found, flat(layer(x)), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5)
