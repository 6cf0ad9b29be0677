"""Ops that move elements or make them: views, slices, joins, fills."""

import math

import torch

from ..builder import Builder, Value
from ..table import aten, dimension, is_number, lowers, overloads, prims

# --- views: in a functional graph they are copies of the shape


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten._reshape_copy.default, aten.unsqueeze.default,
        *overloads(aten.squeeze, "default", "dim", "dims"), aten._reshape_alias.default, *overloads(aten.view_copy, "default"))
def reshape(b: Builder, x: Value, *_) -> Value:
    return b.reshape(x, b.out.shape)


@lowers(aten.expand.default, *overloads(aten.expand_copy, "default"), *overloads(prims.broadcast_in_dim, "default"))
def expand(b: Builder, x: Value, shape, dims=None, implicit=False) -> Value:
    if isinstance(dims, (list, tuple)):
        return b.broadcast_in_dim(x, b.out.shape, dims)
    return b.broadcast(x, b.out.shape)


@lowers(aten.permute.default, *overloads(aten.permute_copy, "default"), *overloads(prims.transpose, "default"))
def permute(b: Builder, x: Value, order) -> Value:
    return b.transpose(x, [dimension(i, x.rank) for i in order])


@lowers(*overloads(aten.transpose, "int"))
def transpose(b: Builder, x: Value, first: int, second: int) -> Value:
    order = list(range(x.rank))
    if order:
        i, j = dimension(first, x.rank), dimension(second, x.rank)
        order[i], order[j] = j, i
    return b.transpose(x, order)


@lowers(*overloads(aten.t, "default"))
def matrix_transpose(b: Builder, x: Value) -> Value:
    return b.transpose(x, list(reversed(range(x.rank))))


def _dense(shape, stride) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True


def _storage_indices(b: Builder, shape, stride, offset: int) -> Value:
    index = b.full(shape, offset, torch.int64)
    for i, step in enumerate(stride):
        place = b.iota(shape, i, torch.int64)
        index = b.add(index, b.multiply(place, b.like(place, step)))
    return index


_MOST_ROWS = 8  # That an element of a strided view may reach over.


def _strides_to_rows(shape, stride) -> list[tuple[int, int]] | None:
    """The dimensions with more than one element from the greatest step to the least, each with the steps over which the elements within
    it reach: more than one for windows that overlap. None if there are many."""
    dims = []
    reach = 1  # From the first element to behind the last one.
    for i in sorted((i for i, size in enumerate(shape) if size > 1 and stride[i]), key=lambda i: stride[i]):
        dims.insert(0, (i, -(-reach // stride[i])))
        reach += (shape[i] - 1) * stride[i]
    return dims if all(rows <= _MOST_ROWS for _, rows in dims) else None


def _strided_by_slices(b: Builder, flat: Value, shape, stride, offset: int, dims: list[tuple[int, int]]) -> Value:
    """Elements of row-major memory as slices of rows of rows: no index is computed."""
    part = b.narrow(flat, 0, offset, flat.count)
    for i, reach in dims:
        last, count = part.rank - 1, shape[i] + reach - 1
        if part.shape[-1] < count * stride[i]:
            part = b.pad(part, b.constant(0, part.dtype), [0] * part.rank, [0] * last + [count * stride[i] - part.shape[-1]])
        part = b.narrow(part, last, 0, count * stride[i])
        part = b.reshape(part, (*part.shape[:-1], count, stride[i]))
        part = b.concatenate([b.narrow(part, last, j, j + shape[i]) for j in range(reach)], last + 1)
    part = b.reshape(b.narrow(part, part.rank - 1, 0, 1), part.shape[:-1])
    listed = [i for i, _ in dims]
    part = b.transpose(part, [listed.index(i) for i in sorted(listed)])
    return b.broadcast_in_dim(part, shape, sorted(listed))


@lowers(aten.as_strided.default, *overloads(aten.as_strided_copy, "default"))
def as_strided(b: Builder, x: Value, shape, stride, offset=None) -> Value:
    """By the places in row-major memory: the arrays of a functional graph are dense."""
    offset = offset or 0
    count = math.prod(shape)
    if count == x.count and not offset and _dense(shape, stride):
        return b.reshape(x, shape)
    if count == 0:
        return b.full(shape, 0, x.dtype)
    flat = b.reshape(x, (x.count,))
    dims = _strides_to_rows(shape, stride)
    if dims is not None:
        return _strided_by_slices(b, flat, shape, stride, offset, dims)
    index = b.reshape(_storage_indices(b, shape, stride, offset), tuple(shape) + (1,))
    return b.gather(flat, index, offset_dims=[], collapsed=[0], start_index_map=[0], slice_sizes=[1], shape=shape)


@lowers(aten.as_strided_scatter.default)
def as_strided_scatter(b: Builder, x: Value, source: Value, shape, stride, offset=None) -> Value:
    if source.count == 0:
        return x
    index = b.reshape(_storage_indices(b, shape, stride, offset or 0), tuple(shape) + (1,))
    flat = b.reshape(x, (x.count,))
    return b.reshape(b.scatter(flat, index, b.broadcast(source, shape), window=[], inserted=[0], to_operand=[0], body=None), x.shape)


# --- slices


def _bounds(size: int, start, end) -> tuple[int, int]:
    start, end = 0 if start is None else start, size if end is None else end
    start = min(max(start + size if start < 0 else start, 0), size)
    return start, min(max(end + size if end < 0 else end, start), size)


@lowers(aten.slice.Tensor, *overloads(aten.slice_copy, "Tensor"))
def slice_dimension(b: Builder, x: Value, dim=0, start=None, end=None, step=1) -> Value:
    dim = dimension(dim, x.rank)
    low, high = _bounds(x.shape[dim], start, end)
    return b.narrow(x, dim, low, high, step)


@lowers(aten.select.int, *overloads(aten.select_copy, "int"))
def select(b: Builder, x: Value, dim: int, index: int) -> Value:
    dim = dimension(dim, x.rank)
    index += x.shape[dim] if index < 0 else 0
    return b.reshape(b.narrow(x, dim, index, index + 1), b.out.shape)


def _put_slice(b: Builder, x: Value, source: Value, dim: int, low: int, high: int, step: int) -> Value:
    """x with a strided slice replaced: what lies before it, the slice with gaps, what lies behind it."""
    if low >= high:
        return x
    if step == 1:
        parts = [b.narrow(x, dim, 0, low)] if low else []
        parts.append(source)
        if high < x.shape[dim]:
            parts.append(b.narrow(x, dim, high, x.shape[dim]))
        return b.concatenate(parts, dim)
    last = low + (source.shape[dim] - 1) * step
    before, behind, gaps = [0] * x.rank, [0] * x.rank, [0] * x.rank
    before[dim], behind[dim], gaps[dim] = low, x.shape[dim] - 1 - last, step - 1
    spread = b.pad(source, b.constant(0, x.dtype), before, behind, gaps)
    chosen = b.pad(b.full(source.shape, True, torch.bool), b.constant(False, torch.bool), before, behind, gaps)
    return b.select(chosen, spread, x)


@lowers(aten.slice_scatter.default)
def slice_scatter(b: Builder, x: Value, source: Value, dim=0, start=None, end=None, step=1) -> Value:
    dim = dimension(dim, x.rank)
    low, high = _bounds(x.shape[dim], start, end)
    shape = list(x.shape)
    shape[dim] = max(0, -(-(high - low) // step))
    return _put_slice(b, x, b.broadcast(b.convert(source, x.dtype), shape), dim, low, high, step)


@lowers(aten.select_scatter.default)
def select_scatter(b: Builder, x: Value, source: Value, dim: int, index: int) -> Value:
    dim = dimension(dim, x.rank)
    index += x.shape[dim] if index < 0 else 0
    shape = x.shape[:dim] + (1,) + x.shape[dim + 1:]
    return _put_slice(b, x, b.reshape(b.convert(source, x.dtype), shape), dim, index, index + 1, 1)


def _diagonal_places(x_shape, offset: int, first: int, second: int) -> tuple[int, int, int]:
    """The row and the column at which a diagonal begins, and its length."""
    row, column = max(0, -offset), max(0, offset)
    return row, column, max(0, min(x_shape[first] - row, x_shape[second] - column))


@lowers(*overloads(aten.diagonal, "default"), *overloads(aten.diagonal_copy, "default"))
def diagonal(b: Builder, x: Value, offset=0, dim1=0, dim2=1) -> Value:
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)
    row, column, length = _diagonal_places(x.shape, offset, first, second)
    rest = [i for i in range(x.rank) if i not in (first, second)]
    if not length or not x.count:
        return b.full(b.out.shape, 0, x.dtype)
    x = b.transpose(x, rest + [first, second])
    flat = b.reshape(x, x.shape[:-2] + (x.shape[-2] * x.shape[-1],))
    step, start = x.shape[-1] + 1, row * x.shape[-1] + column
    return b.narrow(flat, flat.rank - 1, start, start + (length - 1) * step + 1, step)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(b: Builder, x: Value, source: Value, offset=0, dim1=0, dim2=1) -> Value:
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)
    row, column, length = _diagonal_places(x.shape, offset, first, second)
    if not length:
        return x
    order = [i for i in range(x.rank) if i not in (first, second)] + [first, second]
    moved = b.transpose(x, order)
    flat = b.reshape(moved, moved.shape[:-2] + (moved.shape[-2] * moved.shape[-1],))
    step, start = moved.shape[-1] + 1, row * moved.shape[-1] + column
    put = _put_slice(b, flat, b.convert(source, x.dtype), flat.rank - 1, start, start + (length - 1) * step + 1, step)
    return b.transpose(b.reshape(put, moved.shape), [order.index(i) for i in range(x.rank)])


@lowers(*overloads(aten.split_with_sizes, "default"), *overloads(aten.split_with_sizes_copy, "default"))
def split_with_sizes(b: Builder, x: Value, sizes, dim=0):
    dim, parts, start = dimension(dim, x.rank), [], 0
    for size in sizes:
        parts.append(b.narrow(x, dim, start, start + size))
        start += size
    return tuple(parts)


@lowers(*overloads(aten.split, "Tensor"))
def split(b: Builder, x: Value, size: int, dim=0):
    dim = dimension(dim, x.rank)
    length = x.shape[dim]
    return tuple(b.narrow(x, dim, start, min(start + size, length)) for start in range(0, max(length, 1), max(size, 1)))


@lowers(*overloads(aten.unbind, "int"))
def unbind(b: Builder, x: Value, dim=0):
    dim = dimension(dim, x.rank)
    shape = x.shape[:dim] + x.shape[dim + 1:]
    return tuple(b.reshape(b.narrow(x, dim, i, i + 1), shape) for i in range(x.shape[dim]))


# --- joins


@lowers(aten.cat.default, *overloads(prims.cat, "default"))
def cat(b: Builder, parts, dim=0) -> Value:
    rank = len(b.out.shape)
    # An empty vector joins arrays of any rank.
    parts = [b.convert(each, b.out.dtype) for each in parts if each.rank == rank and (each.shape != (0,) or rank == 1)]
    return b.concatenate(parts, dimension(dim, rank)) if parts else b.full(b.out.shape, 0, b.out.dtype)


@lowers(aten.repeat.default)
def repeat(b: Builder, x: Value, repeats) -> Value:
    x = b.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape)
    spread = [size for pair in zip(repeats, x.shape) for size in pair]
    return b.reshape(b.broadcast_in_dim(x, spread, range(1, 2 * x.rank, 2)), b.out.shape)


@lowers(aten.flip.default, *overloads(prims.rev, "default"))
def flip(b: Builder, x: Value, dims) -> Value:
    return b.reverse(x, sorted({dimension(i, x.rank) for i in dims})) if x.rank else x


@lowers(aten.constant_pad_nd.default)
def constant_pad(b: Builder, x: Value, padding, value=0) -> Value:
    low, high = [0] * x.rank, [0] * x.rank
    for i in range(len(padding) // 2):
        low[x.rank - 1 - i], high[x.rank - 1 - i] = padding[2 * i], padding[2 * i + 1]
    return b.pad(x, b.constant(value, x.dtype), low, high)


def _replication_pad_backward(b: Builder, gradient: Value, x: Value, padding) -> Value:
    """What was copied from an edge is added to it again."""
    for i in range(len(padding) // 2):
        dim, size = x.rank - 1 - i, x.shape[x.rank - 1 - i]
        low, high = padding[2 * i], padding[2 * i + 1]
        edges = [0] * gradient.rank
        before, behind = list(edges), list(edges)
        before[dim], behind[dim] = max(0, -low), max(0, -high)  # What was cut off has the gradient 0.
        gradient = b.pad(gradient, b.constant(0, gradient.dtype), before, behind)
        low, high = max(0, low), max(0, high)
        middle = b.narrow(gradient, dim, low, low + size)
        for start, end, place in ((0, low, 0), (low + size, low + size + high, size - 1)):
            if start == end:
                continue
            edge = b.reduce(b.narrow(gradient, dim, start, end), [dim], "add", 0)
            edge = b.reshape(edge, edge.shape[:dim] + (1,) + edge.shape[dim:])
            before, behind = list(edges), list(edges)
            before[dim], behind[dim] = place, size - 1 - place
            middle = b.add(middle, b.pad(edge, b.constant(0, edge.dtype), before, behind))
        gradient = middle
    return gradient


for _name in ("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"):
    lowers(*overloads(getattr(aten, _name), "default"))(_replication_pad_backward)


# --- fills


@lowers(aten.full.default, aten.full_like.default, *overloads(aten.new_full, "default"))
def full(b: Builder, _, *rest, **__) -> Value:
    value = rest[-1]
    if not is_number(value):
        return b.broadcast(b.convert(value, b.out.dtype), b.out.shape)
    return b.full(b.out.shape, value, b.out.dtype)


@lowers(aten.scalar_tensor.default)
def scalar_tensor(b: Builder, value, **_) -> Value:
    return b.constant(value, b.out.dtype)


@lowers(*overloads(aten.fill, "Scalar", "Tensor"))
def fill(b: Builder, x: Value, value) -> Value:
    return b.like(x, value) if is_number(value) else b.broadcast(b.convert(value, x.dtype), x.shape)


@lowers(*overloads(aten.empty, "memory_format"), aten.empty_strided.default, *overloads(aten.empty_permuted, "default"),
        aten.empty_like.default, *overloads(aten.new_empty, "default"), *overloads(aten.new_empty_strided, "default"),
        aten.zeros.default, aten.zeros_like.default, *overloads(aten.new_zeros, "default"), *overloads(prims.empty_strided, "default"),
        *overloads(aten._efficientzerotensor, "default"))
def zeros(b: Builder, *_, **__) -> Value:
    return b.full(b.out.shape, 0, b.out.dtype)


@lowers(aten.ones.default, aten.ones_like.default, *overloads(aten.new_ones, "default"))
def ones(b: Builder, *_, **__) -> Value:
    return b.full(b.out.shape, 1, b.out.dtype)


@lowers(*overloads(aten.arange, "default", "start", "start_step"))
def arange(b: Builder, *bounds, **__) -> Value:
    start, step = (bounds[0] if len(bounds) > 1 else 0), (bounds[2] if len(bounds) > 2 else 1)
    return _progression(b, start, step)


def _progression(b: Builder, start, step) -> Value:
    dtype = b.out.dtype
    if dtype.is_floating_point:  # In f64, as PyTorch computes each element.
        place = b.iota(b.out.shape, 0, torch.float64)
        return b.convert(b.add(b.like(place, start), b.multiply(place, b.like(place, step))), dtype)
    place = b.iota(b.out.shape, 0, torch.int64)
    return b.convert(b.add(b.like(place, start), b.multiply(place, b.like(place, step))), dtype)


@lowers(*overloads(prims.iota, "default"))
def iota(b: Builder, length: int, *, start=0, step=1, **_) -> Value:
    return _progression(b, start, step)


@lowers(*overloads(aten.eye, "default", "m"))
def eye(b: Builder, *_, **__) -> Value:
    rows, columns = (b.iota(b.out.shape, i, torch.int64) for i in range(2))
    return b.convert(b.compare(rows, columns, "EQ"), b.out.dtype)


