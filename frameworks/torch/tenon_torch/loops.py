"""Loops as ops, which programs have as one `stablehlo.while` each, whatever the number of turns: `torch.ops.tenon_torch.loop` over sequences, and
`torch.ops.tenon_torch.until`, which ends when no element goes on.

A step is a function of PyTorch, entered under a name by `step`. It gets the elements of the sequences at one time, the state, and constants,
and returns the new state and outputs, which the loop stacks. The op has no gradient of its own: who uses it says what that is
(`recurrent`).
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .builder import Builder, Value
from .table import lowers

Step = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], tuple[list[Tensor], list[Tensor]]]
STEPS: dict[str, Step] = {}

_library = torch.library.Library("tenon_torch", "FRAGMENT")
_library.define("loop(str step, Tensor[] sequences, Tensor[] state, Tensor[] constants, bool reverse) -> Tensor[]")
_library.define("until(str step, Tensor[] state, Tensor[] constants) -> Tensor[]")


def step(function: Step) -> str:
    """Enters a step under its name, which it returns."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__.strip('_')}"
    assert name not in STEPS, name
    STEPS[name] = function
    return name


def loop(name: str, sequences, state, constants=(), reverse: bool = False) -> tuple[list[Tensor], list[Tensor]]:
    """The state behind the last step, and the outputs of all steps, stacked in the order of the sequences. `reverse`: the last element
    comes first."""
    found = torch.ops.tenon_torch.loop(name, list(sequences), list(state), list(constants), reverse)
    return found[:len(state)], found[len(state):]


def until(name: str, state, constants=()) -> list[Tensor]:
    """The state behind the last step: the first of it is of bool, and says which elements go on. A step without sequences and outputs gives
    the next state; it keeps the results of elements that do not go on."""
    return torch.ops.tenon_torch.until(name, list(state), list(constants))


def _run(name, sequences, state, constants, reverse):
    times = range(sequences[0].shape[0])
    columns = []
    for t in reversed(times) if reverse else times:
        state, outputs = STEPS[name]([each[t] for each in sequences], state, constants)
        columns.append(outputs)
    rows = zip(*(reversed(columns) if reverse else columns))
    return [each.clone() for each in state] + [torch.stack(row) for row in rows]


def _shapes(name, sequences, state, constants, reverse):
    found, outputs = STEPS[name]([each[0] for each in sequences], state, constants)
    length = sequences[0].shape[0]
    return [each.new_empty(each.shape) for each in found] + [each.new_empty((length, *each.shape)) for each in outputs]


def _run_until(name, state, constants):
    state = [each.clone() for each in state]
    while state[0].any():
        state, _ = STEPS[name]([], state, constants)
    return state


_library.impl("loop", _run, "CompositeExplicitAutograd")
_library.impl("loop", _shapes, "Meta")
_library.impl("until", _run_until, "CompositeExplicitAutograd")
_library.impl("until", lambda name, state, constants: [each.new_empty(each.shape) for each in state], "Meta")


def _traced(name: str, *groups: Sequence[Value]) -> torch.fx.GraphModule:
    """The step as a graph of ops that the table has."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from .decompositions import decompositions

    def flat(*given):
        given = list(given)
        state, outputs = STEPS[name](*([given.pop(0) for _ in group] for group in groups))
        return [*state, *outputs]

    with FakeTensorMode(), torch.no_grad():
        arguments = [torch.empty(each.shape, dtype=each.dtype) for group in groups for each in group]
        return make_fx(flat, decomposition_table=decompositions())(*arguments)


@lowers(torch.ops.tenon_torch.loop.default)
def _lower_loop(b: Builder, name: str, sequences, state, constants, reverse):
    from .lowering import inlined

    length = sequences[0].shape[0]
    elements = [Value("", each.shape[1:], each.dtype) for each in sequences]
    module = _traced(name, elements, state, constants)
    results = [each.meta["val"] for each in next(node for node in module.graph.nodes if node.op == "output").args[0]]
    stacks = [b.full((length, *each.shape), 0, each.dtype) for each in results[len(state):]]

    def at(t: Value, x: Value) -> list[Value]:
        return [t] + [b.constant(0, t.dtype)] * (x.rank - 1)

    def body(turn: Value, carried: list[Value]) -> list[Value]:
        t = b.subtract(b.constant(length - 1, turn.dtype), turn) if reverse else turn
        given = [b.reshape(b.dynamic_slice(each, at(t, each), (1, *each.shape[1:])), each.shape[1:]) for each in sequences]
        found = inlined(b, module, [*given, *carried[:len(state)], *constants])
        new = [b.dynamic_update_slice(stack, b.reshape(value, (1, *value.shape)), at(t, stack))
               for stack, value in zip(carried[len(state):], found[len(state):])]
        return found[:len(state)] + new

    return tuple(b.repeat(length, [*state, *stacks], body))


@lowers(torch.ops.tenon_torch.until.default)
def _lower_until(b: Builder, name: str, state, constants):
    from .lowering import inlined

    module = _traced(name, [], state, constants)

    def goes_on(now: list[Value]) -> Value:
        return b.reduce(now[0], range(now[0].rank), "or", False)

    return tuple(b.loop(state, goes_on, lambda now: inlined(b, module, [*now, *constants])))
