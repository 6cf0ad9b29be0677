"""Reductions, and running sums, products and extremes."""

import functools
import math

import torch

from ..builder import Builder, Value, array
from ..table import Unsupported, aten, dimension, dimensions, lowers, overloads, prod, wide
from ..types import highest, lowest, tensor_type


def _kept(b: Builder, x: Value) -> Value:
    """In the shape of the result, with dimensions of size 1 where they are kept."""
    return b.reshape(x, b.out.shape)


@lowers(*overloads(aten.sum, "default", "dim_IntList"))
def reduce_sum(b: Builder, x: Value, dims=None, keepdim=False, *, dtype=None) -> Value:
    return _kept(b, b.reduce(b.convert(x, b.out.dtype), dimensions(dims, x.rank), "add", 0))


@lowers(*overloads(aten.mean, "default", "dim"))
def mean(b: Builder, x: Value, dims=None, keepdim=False, *, dtype=None) -> Value:
    over, result = dimensions(dims, x.rank), b.out.dtype
    total = b.reduce(b.convert(x, wide(result)), over, "add", 0)
    count = prod(x.shape[i] for i in over)
    return _kept(b, b.convert(b.divide(total, b.like(total, count)), result))


@lowers(*overloads(aten.prod, "default", "dim_int"))
def product(b: Builder, x: Value, dim=None, keepdim=False, *, dtype=None) -> Value:
    return _kept(b, b.reduce(b.convert(x, b.out.dtype), dimensions(dim, x.rank), "multiply", 1))


@lowers(aten.amax.default)
def amax(b: Builder, x: Value, dims=(), keepdim=False) -> Value:
    return _kept(b, b.reduce(x, dimensions(dims, x.rank), "maximum", lowest(x.dtype)))


@lowers(aten.amin.default)
def amin(b: Builder, x: Value, dims=(), keepdim=False) -> Value:
    return _kept(b, b.reduce(x, dimensions(dims, x.rank), "minimum", highest(x.dtype)))


@lowers(*overloads(aten.max, "default"))
def max_all(b: Builder, x: Value) -> Value:
    return amax(b, x)


@lowers(*overloads(aten.min, "default"))
def min_all(b: Builder, x: Value) -> Value:
    return amin(b, x)


def _truth(b: Builder, x: Value, dims, name: str, init: bool) -> Value:
    """An empty list of dimensions reduces nothing."""
    over = [] if isinstance(dims, (list, tuple)) and not dims else dimensions(dims, x.rank)
    return b.convert(_kept(b, b.reduce(b.convert(x, torch.bool), over, name, init)), b.out.dtype)


@lowers(*overloads(aten.any, "default", "dim", "dims"))
def any_of(b: Builder, x: Value, dims=None, keepdim=False) -> Value:
    return _truth(b, x, dims, "or", False)


@lowers(*overloads(aten.all, "default", "dim", "dims"))
def all_of(b: Builder, x: Value, dims=None, keepdim=False) -> Value:
    return _truth(b, x, dims, "and", True)


def _variance(b: Builder, x: Value, dims, correction, dtype) -> tuple[Value, Value]:
    """By the sum of squared differences from the mean; both without the dimensions."""
    over = dimensions(dims, x.rank)
    x = b.convert(x, wide(x.dtype if x.dtype.is_complex else dtype))
    count = prod(x.shape[i] for i in over)
    total = b.reduce(x, over, "add", 0)
    average = b.divide(total, b.like(total, count))
    rest = [i for i in range(x.rank) if i not in over]
    difference = b.subtract(x, b.broadcast_in_dim(average, x.shape, rest))
    parts = [b.real(difference), b.imag(difference)] if x.dtype.is_complex else [difference]
    squares = b.reduce(functools.reduce(b.add, (b.multiply(part, part) for part in parts)), over, "add", 0)
    correction = 1 if correction is None else correction
    deviation = b.divide(squares, b.like(squares, max(0, count - correction)))
    return b.convert(deviation, dtype), average if x.dtype.is_complex else b.convert(average, dtype)


@lowers(aten.var.correction)
def variance(b: Builder, x: Value, dims=None, *, correction=None, keepdim=False) -> Value:
    return _kept(b, _variance(b, x, dims, correction, b.out.dtype)[0])


@lowers(aten.var_mean.correction)
def variance_and_mean(b: Builder, x: Value, dims=None, *, correction=None, keepdim=False):
    results = _variance(b, x, dims, correction, b.out[0].dtype)
    return tuple(b.reshape(each, out.shape) for each, out in zip(results, b.out))


# --- the place of an extreme: one reduction of pairs

# Unsigned integers, by their bytes.
WORDS = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


def along_rows(b: Builder, x: Value, dim: int, shape) -> Value:
    """One element a row, for each element of the row."""
    return b.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i != dim])


def at_place(b: Builder, x: Value, place: Value, dim: int) -> Value:
    """The element of each row at its place, bit for bit."""
    bits = x
    if x.dtype == torch.bool:
        bits = b.convert(x, torch.uint8)
    elif x.dtype.is_floating_point:
        bits = b.op("bitcast_convert", x, dtype=WORDS[x.dtype.itemsize])
    is_there = b.compare(b.iota(x.shape, dim, place.dtype), along_rows(b, place, dim, x.shape), "EQ")
    found = b.reduce(b.select(is_there, bits, b.like(bits, 0)), [dim], "add", 0)
    return b.op("bitcast_convert", found, dtype=x.dtype) if x.dtype.is_floating_point else b.convert(found, x.dtype)


def _pairs(b: Builder, x: Value, dim: int, largest: bool) -> tuple[Value, Value]:
    """The extreme along a dimension and its first place; NaN counts as the extreme."""
    return extreme_and_place(b, x, b.iota(x.shape, dim, torch.int64), [dim], largest)


def extreme_and_place(b: Builder, x: Value, place: Value, dims: list[int], largest: bool) -> tuple[Value, Value]:
    """The extreme over dimensions and the least of its places, which are i64; NaN counts as the extreme."""
    start = b.constant(lowest(x.dtype) if largest else highest(x.dtype), x.dtype)
    # Behind every place, so that an element that equals the initial value has its own.
    nowhere = b.constant(torch.iinfo(torch.int64).max, torch.int64)
    scalar, index = tensor_type((), x.dtype), tensor_type((), torch.int64)
    direction = "GT" if largest else "LT"

    def compare(name: str, left: str, right: str, how: str, of: str) -> str:
        return (f'  {name} = "stablehlo.compare"({left}, {right}) <{{comparison_direction = #stablehlo<comparison_direction {how}>}}> : '
                f"({of}, {of}) -> tensor<i1>\n")

    body = compare("%better", "%a", "%c", direction, scalar) + compare("%equal", "%a", "%c", "EQ", scalar)
    if x.dtype.is_floating_point:
        body += compare("%nan", "%a", "%a", "NE", scalar) + compare("%other_nan", "%c", "%c", "NE", scalar)
        body += "  %known = stablehlo.not %other_nan : tensor<i1>\n  %first_nan = stablehlo.and %nan, %known : tensor<i1>\n"
        body += "  %both = stablehlo.and %nan, %other_nan : tensor<i1>\n  %best = stablehlo.or %better, %first_nan : tensor<i1>\n"
        body += "  %same = stablehlo.or %equal, %both : tensor<i1>\n"
    better, same = ("%best", "%same") if x.dtype.is_floating_point else ("%better", "%equal")
    body += compare("%before", "%i", "%j", "LT", index)
    body += f"  %tie = stablehlo.and {same}, %before : tensor<i1>\n  %take = stablehlo.or {better}, %tie : tensor<i1>\n"
    body += f"  %value = stablehlo.select %take, %a, %c : tensor<i1>, {scalar}\n"
    body += f"  %place = stablehlo.select %take, %i, %j : tensor<i1>, {index}\n"
    shape = tuple(size for i, size in enumerate(x.shape) if i not in dims)
    text = (f'"stablehlo.reduce"({x.name}, {place.name}, {start.name}, {nowhere.name}) <{{dimensions = {array(dims)}}}> '
            f"({{\n^bb0(%a: {scalar}, %i: {index}, %c: {scalar}, %j: {index}):\n{body}"
            f"  stablehlo.return %value, %place : {scalar}, {index}\n}})")
    value, at = b.several(text, [x, place, start, nowhere], [(shape, x.dtype), (shape, torch.int64)])
    return value, at


def _extreme(largest: bool):
    def lower(b: Builder, x: Value, dim: int, keepdim=False):
        if x.rank == 0:
            return x, b.constant(0, torch.int64)
        dim = dimension(dim, x.rank)
        value, place = _pairs(b, x, dim, largest)
        if x.dtype.is_floating_point:  # Where both results are used, a reduction of floats and their places is not in vectors.
            value = at_place(b, x, place, dim)
        return b.reshape(value, b.out[0].shape), b.reshape(place, b.out[1].shape)

    return lower


lowers(aten.max.dim)(_extreme(True))
lowers(aten.min.dim)(_extreme(False))


def _arg_extreme(largest: bool):
    def lower(b: Builder, x: Value, dim=None, keepdim=False) -> Value:
        if dim is None:
            x, dim = b.reshape(x, (x.count,)), 0
        if x.rank == 0:
            return b.full(b.out.shape, 0, torch.int64)
        return _kept(b, _pairs(b, x, dimension(dim, x.rank), largest)[1])

    return lower


lowers(aten.argmax.default)(_arg_extreme(True))
lowers(aten.argmin.default)(_arg_extreme(False))


# --- running


def _running(b: Builder, x: Value, dim: int, name: str, init) -> Value:
    if x.rank == 0 or x.count == 0:
        return x
    dim = dimension(dim, x.rank)
    window, padding = [1] * x.rank, [(0, 0)] * x.rank
    window[dim], padding[dim] = x.shape[dim], (x.shape[dim] - 1, 0)
    return b.reduce_window(x, name, init, window, [1] * x.rank, padding)


@lowers(aten.cumsum.default)
def cumsum(b: Builder, x: Value, dim: int, *, dtype=None) -> Value:
    x = b.convert(x, wide(b.out.dtype))
    return b.convert(_running(b, x, dim, "add", 0), b.out.dtype)


@lowers(aten.cumprod.default)
def cumprod(b: Builder, x: Value, dim: int, *, dtype=None) -> Value:
    x = b.convert(x, wide(b.out.dtype))
    return b.convert(_running(b, x, dim, "multiply", 1), b.out.dtype)


@lowers(aten.logcumsumexp.default, *overloads(aten._logcumsumexp, "default"))
def log_cumsum_exp(b: Builder, x: Value, dim: int) -> Value:
    """From the largest so far: log(sum exp(x - m)) + m with one m for the whole row would lose the small beginnings."""
    if x.rank == 0 or x.count == 0:
        return x
    if x.dtype.is_complex:
        raise Unsupported("complex numbers")
    dtype, dim = x.dtype, dimension(dim, x.rank)
    x = b.convert(x, wide(dtype))
    length, step = x.shape[dim], 1
    while step < length:  # A scan by doubling, of the op logaddexp.
        low, high = [0] * x.rank, [0] * x.rank
        low[dim] = step
        shifted = b.pad(b.narrow(x, dim, 0, length - step), b.constant(-math.inf, x.dtype), low, high)
        x, step = _log_add_exp(b, x, shifted), 2 * step
    return b.convert(x, dtype)


def _log_add_exp(b: Builder, x: Value, y: Value) -> Value:
    top = b.op("maximum", x, y)
    equal = b.compare(x, y, "EQ")  # Of infinities the difference is no number.
    distance = b.select(equal, b.like(x, 0), b.op("negate", b.op("abs", b.subtract(x, y))))
    return b.add(top, b.op("log_plus_one", b.op("exponential", distance)))


def _running_extreme(largest: bool):
    def lower(b: Builder, x: Value, dim: int):
        """Value and last place of the extreme so far; NaN stays. Two scans: of the values, then of the places that have the extreme."""
        if x.rank == 0 or x.count == 0:
            return x, b.full(x.shape, 0, torch.int64)
        dim = dimension(dim, x.rank)
        bound = lowest(x.dtype) if largest else highest(x.dtype)
        extreme = _running(b, x, dim, "maximum" if largest else "minimum", bound)
        has_it = b.compare(x, extreme, "EQ")
        if x.dtype.is_floating_point:
            has_it = b.op("or", has_it, b.compare(x, x, "NE"))
        index_type = torch.int32 if x.shape[dim] < 2**31 else torch.int64
        place = b.iota(x.shape, dim, index_type)
        place = _running(b, b.select(has_it, place, b.like(place, 0)), dim, "maximum", 0)
        return extreme, b.convert(place, torch.int64)

    return lower


lowers(*overloads(aten.cummax, "default"))(_running_extreme(True))
lowers(*overloads(aten.cummin, "default"))(_running_extreme(False))



# --- counts of equal elements


@lowers(*overloads(aten.histc, "default"))
def histogram(b: Builder, x: Value, bins=100, low=0, high=0) -> Value:
    """Counts by intervals of one width between `low` and `high`, or between the extremes if these are equal."""
    if x.count == 0:
        return b.full(b.out.shape, 0, x.dtype)
    dtype = wide(x.dtype)
    x = b.reshape(b.convert(x, dtype), (x.count,))
    left, right = b.constant(low, dtype), b.constant(high, dtype)
    if low == high:
        left, right = b.reduce(x, [0], "minimum", math.inf), b.reduce(x, [0], "maximum", -math.inf)
    first, last = b.broadcast(left, x.shape), b.broadcast(right, x.shape)
    place = b.divide(b.multiply(b.subtract(x, first), b.like(x, bins)), b.subtract(last, first))
    place = b.op("minimum", b.convert(place, torch.int64), b.full(x.shape, bins - 1, torch.int64))
    if low == high:  # Equal elements are in the middle of an interval from one below to one above them.
        place = b.select(b.compare(first, last, "EQ"), b.like(place, bins // 2), place)
    inside = b.op("and", b.compare(x, first, "GE"), b.compare(x, last, "LE"))
    place = b.select(inside, place, b.like(place, bins))  # Behind the last bin, which scatter drops.
    counts = b.scatter(b.full((bins,), 0, torch.int32), b.reshape(place, (*place.shape, 1)), b.full(x.shape, 1, torch.int32),
                       window=[], inserted=[0], to_operand=[0], body="add")
    return b.convert(counts, b.out.dtype)
