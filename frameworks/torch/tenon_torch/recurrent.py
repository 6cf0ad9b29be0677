"""Recurrent layers over sequences, `nn.LSTM`, `nn.GRU` and `nn.RNN`, as loops (`loops`), forward and backward.

PyTorch's own decompositions lay the steps out one after another, so that a program grows with the length. Here what does not depend on the
state is done for all steps at once, before the loop (the product of the inputs) and behind it (the gradient of the weights); the loop has the
product of the state, and keeps what its gradient needs. Left to PyTorch's way: projections, packed sequences, autocast, the transforms of
`torch.func`.
"""

import contextlib
import threading
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C import DispatchKey
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from .loops import loop, step
from .table import aten


# --- the cells: of gates, biases added, and what came before; also the ops that nn.LSTMCell and nn.GRUCell are off the CPU. The workspace
# has what the gradients need.


def lstm_cell(gates, state):
    enter, forget, candidate, leave = gates.chunk(4, 1)
    enter, forget, leave, candidate = torch.sigmoid(enter), torch.sigmoid(forget), torch.sigmoid(leave), torch.tanh(candidate)
    new = forget * state + enter * candidate
    return leave * torch.tanh(new), new, torch.cat([enter, forget, candidate, leave], 1)


def lstm_cell_backward(by_hidden, by_state, state, workspace):
    enter, forget, candidate, leave = workspace.chunk(4, 1)
    squashed = torch.tanh(forget * state + enter * candidate)
    by_new = by_hidden * leave * (1 - squashed * squashed)
    by_new = by_new if by_state is None else by_new + by_state
    gates = torch.cat([by_new * candidate * enter * (1 - enter), by_new * state * forget * (1 - forget),
                       by_new * enter * (1 - candidate * candidate), by_hidden * squashed * leave * (1 - leave)], 1)
    return gates, by_new * forget


def gru_cell(input_gates, hidden_gates, state):
    (ir, iz, new), (hr, hz, hidden) = input_gates.chunk(3, 1), hidden_gates.chunk(3, 1)
    reset, update = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    candidate = torch.tanh(new + reset * hidden)
    return candidate + update * (state - candidate), torch.cat([reset, update, candidate, state, hidden], 1)


def gru_cell_backward(gradient, workspace):
    reset, update, candidate, state, hidden = workspace.chunk(5, 1)
    by_update = gradient * (state - candidate) * update * (1 - update)
    by_candidate = gradient * (1 - update) * (1 - candidate * candidate)
    by_reset = by_candidate * hidden * reset * (1 - reset)
    return torch.cat([by_reset, by_update, by_candidate], 1), torch.cat([by_reset, by_update, by_candidate * reset], 1), gradient * update


# --- the steps: of the sequences, the state, and the recurrent weights, turned for the way forward


@step
def _lstm(sequences, state, constants):
    hidden, new, _ = lstm_cell(sequences[0] + state[0] @ constants[0], state[1])
    return [hidden, new], [hidden]


@step
def _lstm_kept(sequences, state, constants):
    hidden, new, workspace = lstm_cell(sequences[0] + state[0] @ constants[0], state[1])
    return [hidden, new], [hidden, workspace, state[1]]


@step
def _lstm_backward(sequences, state, constants):
    gradient, workspace, before = sequences
    gates, by_state = lstm_cell_backward(gradient + state[0], state[1], before, workspace)
    return [gates @ constants[0], by_state], [gates]


@step
def _gru(sequences, state, constants):
    hidden, _ = gru_cell(sequences[0], state[0] @ constants[0] + constants[1], state[0])
    return [hidden], [hidden]


@step
def _gru_kept(sequences, state, constants):
    hidden, workspace = gru_cell(sequences[0], state[0] @ constants[0] + constants[1], state[0])
    return [hidden], [hidden, workspace]


@step
def _gru_backward(sequences, state, constants):
    by_input, by_hidden, by_state = gru_cell_backward(sequences[0] + state[0], sequences[1])
    return [by_state + by_hidden @ constants[0]], [by_input, by_hidden]


@step
def _tanh(sequences, state, constants):
    hidden = torch.tanh(sequences[0] + state[0] @ constants[0])
    return [hidden], [hidden]


@step
def _tanh_backward(sequences, state, constants):
    gradient, hidden = sequences
    gates = (gradient + state[0]) * (1 - hidden * hidden)
    return [gates @ constants[0]], [gates]


@step
def _relu(sequences, state, constants):
    hidden = torch.relu(sequences[0] + state[0] @ constants[0])
    return [hidden], [hidden]


@step
def _relu_backward(sequences, state, constants):
    gradient, hidden = sequences
    gates = torch.where(hidden <= 0, 0, gradient + state[0])  # NaN is not below 0: its gradient is that of the result, as PyTorch's
    return [gates @ constants[0]], [gates]


class Cell(NamedTuple):
    """The names of its steps; how many tensors its state has; whether the recurrent bias is added in the loop: a gate multiplies it."""

    forward: str
    kept: str
    backward: str
    states: int = 1
    bias_inside: bool = False


_CELLS = {"lstm": Cell(_lstm, _lstm_kept, _lstm_backward, states=2), "gru": Cell(_gru, _gru_kept, _gru_backward, bias_inside=True),
          "rnn_tanh": Cell(_tanh, _tanh, _tanh_backward), "rnn_relu": Cell(_relu, _relu, _relu_backward)}


class _Sequence(torch.autograd.Function):
    """One direction of one layer: of the gates [time, batch, gates] that the inputs give, and the state."""

    @staticmethod
    def forward(ctx, cell, reverse, gates, weight, bias, *state):
        last, (output, *kept) = loop(cell.kept, [gates], state, _constants(weight.t(), bias), reverse)
        ctx.cell, ctx.reverse, ctx.has_bias = cell, reverse, bias is not None
        ctx.save_for_backward(weight, state[0], output, *kept)
        return output, *last

    @staticmethod
    def backward(ctx, by_output, *by_last):
        weight, first, output, *kept = ctx.saved_tensors
        by_first, (by_gates, *others) = loop(ctx.cell.backward, [by_output, *(kept or [output])], by_last, [weight], not ctx.reverse)
        by_hidden = (others[0] if others else by_gates).flatten(0, 1)
        before = torch.cat([output[1:], first[None]] if ctx.reverse else [first[None], output[:-1]]).flatten(0, 1)
        return None, None, by_gates, by_hidden.t() @ before, by_hidden.sum(0) if ctx.has_bias else None, *by_first


def _constants(weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    return [weight] if bias is None else [weight, bias]


def _sequence(cell: Cell, x: Tensor, state: list[Tensor], parameters: list[Tensor], reverse: bool) -> tuple[Tensor, ...]:
    """The outputs, and each tensor of the state behind the last step."""
    weight, recurrent, *biases = parameters
    inside = biases[1] if biases and cell.bias_inside else None
    if biases and not cell.bias_inside:
        biases = [biases[0] + biases[1]]
    if cell.bias_inside and inside is None:
        inside = recurrent.new_zeros(recurrent.shape[0])
    gates = F.linear(x, weight, *biases[:1])
    if torch.is_grad_enabled() and any(each.requires_grad for each in (gates, *_constants(recurrent, inside), *state)):
        return _Sequence.apply(cell, reverse, gates, recurrent, inside, *state)
    last, (output,) = loop(cell.forward, [gates], state, _constants(recurrent.t(), inside), reverse)
    return output, *last


def _layers(name: str, x, state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    cell, directions = _CELLS[name], 2 if bidirectional else 1
    each, count = 4 if has_biases else 2, num_layers * directions
    x = x.transpose(0, 1) if batch_first else x
    last = []
    for i in range(num_layers):
        found = [_sequence(cell, x, [part[k] for part in state], parameters[k * each:(k + 1) * each], reverse=k % directions == 1)
                 for k in range(i * directions, (i + 1) * directions)]
        last += [rest for _, *rest in found]
        x = torch.cat([output for output, *_ in found], 2) if bidirectional else found[0][0]
        if dropout and train and i < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    assert len(last) == count
    return x.transpose(0, 1) if batch_first else x, *(torch.stack(part) for part in zip(*last))


def _is_ours(name: str, x, state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> bool:
    """Whether a layer becomes a loop. Arguments of packed sequences stand elsewhere, and a projection has a weight of its own."""
    if not isinstance(parameters, (list, tuple)) or isinstance(state, Tensor) != (_CELLS[name].states == 1):
        return False
    whole = len(parameters) == num_layers * (2 if bidirectional else 1) * (4 if has_biases else 2)
    return whole and x.dim() == 3 and x.shape[0] > 0 and x.shape[1] > 0 and not torch.is_autocast_enabled(x.device.type)


# --- where they take part: PyTorch decomposes these ops by functions in Python, which are wrapped

_compiling = threading.local()


@contextlib.contextmanager
def loops():
    """Recurrent layers that are traced within are loops."""
    before, _compiling.now = getattr(_compiling, "now", False), True
    try:
        yield
    finally:
        _compiling.now = before


def _is_shape_alone(x: Tensor) -> bool:
    """TorchDynamo evaluates a layer for the shapes of its results, and nobody sees how: a loop is faster, too, for any backend."""
    return isinstance(x, FakeTensor) and get_proxy_mode() is None and TracingContext.try_get() is not None


def _is_transformed() -> bool:
    """Whether `torch.func.grad`, `jvp` or the like transforms the layer, of which `_Sequence` has none."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _layer(name: str, otherwise):
    def layer(*given):
        if not (len(given) == 9 and _is_ours(name, *given)) or _is_transformed():
            return otherwise(*given)
        if not (getattr(_compiling, "now", False) or _is_shape_alone(given[0])):
            return otherwise(*given)
        x, state, *rest = given
        return _layers(name, x, [state] if isinstance(state, Tensor) else state, *rest)

    return layer


def _wrap() -> None:
    for name in _CELLS:
        op = getattr(aten, name).input
        for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
            if key in op.py_kernels:
                op.py_kernels[key] = _layer(name, op.py_kernels[key])
        op._dispatch_cache.clear()


_wrap()
