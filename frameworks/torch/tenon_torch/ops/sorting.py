"""Sorts and selections. NaN is larger than every number, as in PyTorch."""

import math

import torch

from ..builder import Builder, Value
from ..table import aten, dimension, lowers, overloads


def _sorted(b: Builder, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    if x.rank == 0:
        return x, b.constant(0, torch.int64)
    dim = dimension(dim, x.rank)
    keys = b.convert(x, torch.uint8) if x.dtype == torch.bool else x
    values, places = b.sort([keys, b.iota(x.shape, dim, torch.int64)], dim, "GT" if descending else "LT")
    return b.convert(values, x.dtype), places


@lowers(aten.sort.default)
def sort(b: Builder, x: Value, dim=-1, descending=False):
    return _sorted(b, x, dim, descending)


@lowers(*overloads(aten.sort, "stable"))
def stable_sort(b: Builder, x: Value, *, stable=None, dim=-1, descending=False):
    return _sorted(b, x, dim, descending)


@lowers(*overloads(aten.argsort, "stable"))
def argsort(b: Builder, x: Value, *, stable=None, dim=-1, descending=False) -> Value:
    return _sorted(b, x, dim, descending)[1]


def _selected(b: Builder, x: Value, k: int, dim: int, largest: bool) -> tuple[Value, Value]:
    """The k greatest or least elements along a dimension, in order, and their places."""
    keys = b.convert(x, torch.uint8) if x.dtype == torch.bool else x
    upside = "negate" if x.dtype.is_floating_point else "not"
    keys = keys if largest else b.op(upside, keys)
    if x.dtype.is_floating_point:  # top_k knows the sign of a NaN.
        keys = b.select(b.compare(x, x, "NE"), b.like(x, math.nan if largest else -math.nan), keys)
    order = [i for i in range(x.rank) if i != dim] + [dim]
    back = [order.index(i) for i in range(x.rank)]
    moved = b.transpose(keys, order)
    shape = moved.shape[:-1] + (k,)
    values, places = b.several(f'"chlo.top_k"({moved.name}) <{{k = {k} : i64}}>', [moved], [(shape, keys.dtype), (shape, torch.int32)])
    values = values if largest else b.op(upside, values)
    return b.transpose(b.convert(values, x.dtype), back), b.transpose(b.convert(places, torch.int64), back)


@lowers(aten.topk.default)
def topk(b: Builder, x: Value, k: int, dim=-1, largest=True, sorted=True):
    if x.rank == 0 or k == 0:
        return b.reshape(x, b.out[0].shape) if k else b.full(b.out[0].shape, 0, x.dtype), b.full(b.out[1].shape, 0, torch.int64)
    return _selected(b, x, k, dimension(dim, x.rank), largest)


@lowers(aten.kthvalue.default)
def kth_value(b: Builder, x: Value, k: int, dim=-1, keepdim=False):
    if x.rank == 0:
        return x, b.constant(0, torch.int64)
    dim = dimension(dim, x.rank)
    from_top = x.shape[dim] - k + 1
    kept = min(k, from_top)
    found = _selected(b, x, kept, dim, from_top < k)
    return tuple(b.reshape(b.narrow(each, dim, kept - 1, kept), out.shape) for each, out in zip(found, b.out))
