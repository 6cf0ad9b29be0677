"""Sorts and selections. NaN is larger than every number, as in PyTorch."""

import math

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, dimension, lowers, overloads
from .reductions import WORDS, along_rows, at_place, extreme_and_place


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
        nan = b.like(x, math.nan)
        keys = b.select(b.compare(x, x, "NE"), nan if largest else b.op(upside, nan), keys)
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


# --- the element of one rank: found digit by digit, without an order of all


def _as_unsigned(b: Builder, x: Value) -> Value:
    """Unsigned integers in the order of the elements. Zeros of both signs are one; all NaNs are the largest."""
    if x.dtype == torch.bool:
        return b.convert(x, torch.uint8)
    bits = 8 * x.dtype.itemsize
    word = WORDS[x.dtype.itemsize]
    top = 1 << (bits - 1)
    if not x.dtype.is_floating_point:
        return x if not x.dtype.is_signed else b.op("xor", *_with(b, b.op("bitcast_convert", x, dtype=word), top))
    x = b.select(b.compare(x, b.like(x, 0), "EQ"), b.like(x, 0), x)
    x = b.select(b.compare(x, x, "NE"), b.like(x, math.nan), x)
    word_of = b.op("bitcast_convert", x, dtype=word)
    is_negative = b.compare(word_of, b.like(word_of, top), "GE")
    return b.select(is_negative, b.op("not", word_of), b.op("or", *_with(b, word_of, top)))


def _with(b: Builder, x: Value, number: int) -> tuple[Value, Value]:
    return x, b.like(x, number)


def _of_rank(b: Builder, x: Value, rank: Value, dim: int) -> tuple[Value, Value]:
    """The element that has `rank` others before it when each row along a dimension is sorted, and its first place.

    Two bits of it are found a turn, by three counts of the elements below: work that is linear in the row, whatever the rank. Few
    elements are sorted.
    """
    keys, along = _as_unsigned(b, x), dim
    if x.shape[dim] <= _SHORT and dim:  # Short rows are counted side by side.
        keys, along = b.transpose(keys, [dim, *(i for i in range(x.rank) if i != dim)]), 0
    place, last = b.iota(keys.shape, along, rank.dtype), torch.iinfo(rank.dtype).max
    if x.shape[dim] <= _SORTED:
        ordered, places = b.sort([keys, place], along, "LT")
        has_rank = b.compare(place, along_rows(b, rank, along, keys.shape), "EQ")
        first = b.reduce(b.select(has_rank, places, b.like(places, 0)), [along], "add", 0)
    else:
        has_it = b.compare(keys, along_rows(b, _key_of_rank(b, keys, rank, along), along, keys.shape), "EQ")
        first = b.reduce(b.select(has_it, place, b.like(place, last)), [along], "minimum", last)
    return at_place(b, x, first, dim), b.convert(first, torch.int64)


def _key_of_rank(b: Builder, keys: Value, rank: Value, dim: int) -> Value:
    bits = 8 * keys.dtype.itemsize

    def turn(number: Value, values: list[Value]) -> list[Value]:
        found, = values
        number = b.convert(number, keys.dtype)
        shift = b.subtract(b.constant(bits - 2, keys.dtype), b.add(number, number))
        digit = b.like(found, 0)
        for step in (1, 2, 3):
            least = b.broadcast(b.op("shift_left", b.constant(step, keys.dtype), shift), found.shape)
            is_below = b.compare(keys, along_rows(b, b.add(found, least), dim, keys.shape), "LT")
            below = b.reduce(b.convert(is_below, rank.dtype), [dim], "add", 0)
            digit = b.add(digit, b.convert(b.compare(below, rank, "LE"), keys.dtype))
        return [b.add(found, b.op("shift_left", digit, b.broadcast(shift, digit.shape)))]

    return b.repeat(bits // 2, [b.full(rank.shape, 0, keys.dtype)], turn)[0]


_SORTED = 8  # Up to so many elements a row, a sort takes less time than the turns.
_SHORT = 64  # So many elements of a row fill no more than a few vectors.


def _counts(size: int) -> torch.dtype:
    """The type in which elements of a row are counted."""
    return torch.int32 if size < 2**31 else torch.int64


_FEW = 64  # Up to so many elements from an end, a selection in order takes less time.


@lowers(aten.kthvalue.default)
def kth_value(b: Builder, x: Value, k: int, dim=-1, keepdim=False):
    if x.rank == 0:
        return x, b.constant(0, torch.int64)
    dim = dimension(dim, x.rank)
    size = x.shape[dim]
    from_top = size - k + 1
    kept = min(k, from_top)
    if kept <= _FEW:
        found = tuple(b.narrow(each, dim, kept - 1, kept) for each in _selected(b, x, kept, dim, from_top < k))
    else:
        rows = x.shape[:dim] + x.shape[dim + 1:]
        found = _of_rank(b, x, b.full(rows, k - 1, _counts(size)), dim)
    return tuple(b.reshape(each, out.shape) for each, out in zip(found, b.out))


def _median(b: Builder, x: Value, dim: int, skips_nan: bool) -> tuple[Value, Value]:
    """The element in the middle, the lower of two. A NaN is the median of all, or does not count."""
    size, count = x.shape[dim], _counts(x.shape[dim])
    rows = x.shape[:dim] + x.shape[dim + 1:]
    middle = b.full(rows, (size - 1) // 2, count)
    if x.dtype.is_floating_point:
        nans = b.reduce(b.convert(b.compare(x, x, "NE"), count), [dim], "add", 0)
        numbers = b.subtract(b.full(rows, size, count), nans)
        if skips_nan:
            last = b.op("maximum", b.subtract(numbers, b.like(numbers, 1)), b.like(numbers, 0))
            middle = b.op("shift_right_logical", last, b.like(last, 1))
        else:
            middle = b.select(b.compare(nans, b.like(nans, 0), "GT"), numbers, middle)
    return _of_rank(b, x, middle, dim)


def _medians(skips_nan: bool):
    def along(b: Builder, x: Value, dim: int, keepdim=False):
        if x.rank == 0:
            return x, b.constant(0, torch.int64)
        dim = dimension(dim, x.rank)
        if x.shape[dim] == 0:
            raise Unsupported("a median of nothing")
        return tuple(b.reshape(each, out.shape) for each, out in zip(_median(b, x, dim, skips_nan), b.out))

    def of_all(b: Builder, x: Value) -> Value:
        if x.count == 0:
            raise Unsupported("a median of nothing")
        return _median(b, b.reshape(x, (x.count,)), 0, skips_nan)[0]

    return along, of_all


for _op, _skips_nan in ((aten.median, False), (aten.nanmedian, True)):
    for _overload, _lowering in zip(("dim", "default"), _medians(_skips_nan)):
        lowers(*overloads(_op, _overload))(_lowering)


# --- the element that is most often


@lowers(*overloads(aten.mode, "default"))
def mode(b: Builder, x: Value, dim=-1, keepdim=False):
    """The least of the most frequent elements of each row, and its last place: by the lengths of runs of the sorted row."""
    if x.rank == 0:
        return x, b.constant(0, torch.int64)
    dim = dimension(dim, x.rank)
    size, count = x.shape[dim], _counts(x.shape[dim])
    if size == 0:
        raise Unsupported("the most frequent of no elements")
    keys, at = _as_unsigned(b, x), b.iota(x.shape, dim, count)
    ordered, = b.sort([keys], dim, "LT")
    is_new = b.convert(b.compare(b.narrow(ordered, dim, 1, size), b.narrow(ordered, dim, 0, size - 1), "NE"), count)
    starts = b.multiply(at, b.pad(is_new, b.constant(0, count), [int(i == dim) for i in range(x.rank)], [0] * x.rank))
    window, padding = [1] * x.rank, [(0, 0)] * x.rank
    window[dim], padding[dim] = size, (size - 1, 0)
    length = b.subtract(at, b.reduce_window(starts, "maximum", 0, window, [1] * x.rank, padding))
    _, end = extreme_and_place(b, length, b.convert(at, torch.int64), [dim], True)
    has_it = b.compare(keys, along_rows(b, at_place(b, ordered, b.convert(end, count), dim), dim, x.shape), "EQ")
    place = b.reduce(b.select(has_it, at, b.like(at, 0)), [dim], "maximum", 0)
    return b.reshape(at_place(b, x, place, dim), b.out[0].shape), b.reshape(b.convert(place, torch.int64), b.out[1].shape)
