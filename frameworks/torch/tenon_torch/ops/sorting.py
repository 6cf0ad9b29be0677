"""Sorts and selections. NaN is larger than every number, as in PyTorch."""

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


@lowers(aten.topk.default)
def topk(b: Builder, x: Value, k: int, dim=-1, largest=True, sorted=True):
    if x.rank == 0:
        return b.reshape(x, b.out[0].shape), b.full(b.out[1].shape, 0, torch.int64)
    dim = dimension(dim, x.rank)
    if not largest or k == 0 or not x.dtype.is_floating_point:
        values, places = _sorted(b, x, dim, largest)
        return b.narrow(values, dim, 0, k), b.narrow(places, dim, 0, k)
    order = [i for i in range(x.rank) if i != dim] + [dim]
    back = [order.index(i) for i in range(x.rank)]
    moved = b.transpose(x, order)
    shape = moved.shape[:-1] + (k,)
    values, places = b.several(f'"chlo.top_k"({moved.name}) <{{k = {k} : i64}}>', [moved], [(shape, x.dtype), (shape, torch.int32)])
    return b.transpose(values, back), b.transpose(b.convert(places, torch.int64), back)


@lowers(aten.kthvalue.default)
def kth_value(b: Builder, x: Value, k: int, dim=-1, keepdim=False):
    values, places = _sorted(b, x, dim, False)
    if x.rank == 0:
        return values, places
    dim = dimension(dim, x.rank)
    return tuple(b.reshape(b.narrow(each, dim, k - 1, k), out.shape) for each, out in zip((values, places), b.out))
