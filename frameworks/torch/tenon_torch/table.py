"""The table of lowerings: an ATen op's overload and the function that writes it as StableHLO."""

import math
from collections.abc import Callable

import torch
import torch._prims  # Registers the ops of torch.ops.prims.

from .builder import Builder, Value

aten = torch.ops.aten
prims = torch.ops.prims

Lowering = Callable[..., "Value | tuple[Value, ...]"]
TABLE: dict[torch._ops.OpOverload, Lowering] = {}
# Ops that PyTorch registers when a module of its own is imported, by their names.
NAMED: dict[str, Lowering] = {}


class Unsupported(Exception):
    """An op, or a case of it, that has no lowering."""


def lowers(*overloads: torch._ops.OpOverload) -> Callable[[Lowering], Lowering]:
    """Enters a function into the table. It gets the builder and then the op's arguments: tensors as `Value`, sizes as ints."""

    def enter(function: Lowering) -> Lowering:
        for overload in overloads:
            assert overload not in TABLE, overload
            TABLE[overload] = function
        return function

    return enter


def lowering_of(op) -> Lowering | None:
    """The function that writes an op, if there is one."""
    return TABLE.get(op) or NAMED.get(str(op))


def overloads(packet, *names: str) -> list[torch._ops.OpOverload]:
    """The overloads of an op that this version of PyTorch has."""
    return [getattr(packet, name) for name in names if name in packet.overloads()]


def is_number(x) -> bool:
    return not isinstance(x, Value)


def promoted(b: Builder, x, dtype: torch.dtype, shape=None) -> Value:
    """A tensor or a number as a tensor of this type and shape (default: that of the result)."""
    shape = b.out.shape if shape is None else shape
    if is_number(x):
        return b.full(shape, x, dtype)
    return b.broadcast(b.convert(x, dtype), shape)


def result_type(a, b) -> torch.dtype:
    """PyTorch's promotion of two operands."""

    def stand_in(x):
        return x if is_number(x) else torch.empty((1,) * min(x.rank, 1), dtype=x.dtype, device="meta")

    if is_number(a) and is_number(b):
        return torch.result_type(torch.tensor(a), torch.tensor(b))
    return torch.result_type(stand_in(a), stand_in(b))


def dimension(index: int, rank: int) -> int:
    return index % rank if rank else 0


def dimensions(given, rank: int) -> list[int]:
    """The dimensions that an argument `dim` names: all of them for None and for an empty list."""
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(rank))
    given = [given] if isinstance(given, int) else given
    return sorted({dimension(each, rank) for each in given}) if rank else []


def twice(values, count: int = 2) -> list[int]:
    """An argument that is a number for each spatial dimension, or one for all."""
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which PyTorch computes what has several roundings: f32 for the short floats."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype


def prod(numbers) -> int:
    return math.prod(numbers)
