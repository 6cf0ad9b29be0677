"""Gathers and scatters. An index out of range is an error of eager PyTorch alone: here a gather clamps and a scatter drops it."""

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, dimension, is_number, lowers, overloads, prod, result_type
from ..types import highest, lowest


def _wrapped(b: Builder, index: Value, size: int) -> Value:
    """Negative indices count from the end."""
    index = b.convert(index, torch.int64)
    return b.select(b.compare(index, b.like(index, 0), "LT"), b.add(index, b.like(index, size)), index)


class _Advanced:
    """NumPy's advanced indexing: which dimensions tensors index, and where their shape stands in the result."""

    def __init__(self, b: Builder, x: Value, indices):
        indices = list(indices) + [None] * (x.rank - len(indices))
        if any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
            raise Unsupported("a mask as an index: the size of the result depends on data")
        self.indexed = [d for d, index in enumerate(indices) if index is not None]
        self.shape = tuple(torch.broadcast_shapes(*(indices[d].shape for d in self.indexed)))
        adjacent = self.indexed == list(range(self.indexed[0], self.indexed[-1] + 1))
        first = self.indexed[0] if adjacent else 0
        self.rest = [d for d in range(x.rank) if d not in self.indexed]
        # The dimensions of the result that come from the rest, in front of and behind the tensors' shape.
        self.offset = list(range(first)) + [i + len(self.shape) for i in range(first, len(self.rest))]
        sizes = [x.shape[d] for d in self.rest]
        self.result = tuple(sizes[:first]) + self.shape + tuple(sizes[first:])
        parts = [b.reshape(b.broadcast(_wrapped(b, indices[d], x.shape[d]), self.shape), self.shape + (1,)) for d in self.indexed]
        self.coordinates = b.concatenate(parts, len(self.shape))
        self.slice_sizes = [1 if d in self.indexed else x.shape[d] for d in range(x.rank)]


@lowers(aten.index.Tensor, *overloads(aten._unsafe_index, "Tensor"))
def index(b: Builder, x: Value, indices) -> Value:
    if all(i is None for i in indices):
        return x
    at = _Advanced(b, x, indices)
    if prod(at.result) == 0 or x.count == 0:
        return b.full(at.result, 0, x.dtype)
    return b.gather(x, at.coordinates, offset_dims=at.offset, collapsed=at.indexed, start_index_map=at.indexed,
                    slice_sizes=at.slice_sizes, shape=at.result)


@lowers(aten.index_put.default, *overloads(aten._unsafe_index_put, "default"), *overloads(aten._index_put_impl, "default"))
def index_put(b: Builder, x: Value, indices, values: Value, accumulate=False, unsafe=False) -> Value:
    indices = list(indices)
    values = b.convert(values, x.dtype)
    masks = [i for i in indices if i is not None and i.dtype in (torch.bool, torch.uint8)]
    if masks:
        if sum(i is not None for i in indices) != 1 or values.count != 1 or accumulate:
            raise Unsupported("a mask as an index: the number of values depends on data")
        mask, first = b.convert(masks[0], torch.bool), next(d for d, i in enumerate(indices) if i is not None)
        chosen = b.broadcast_in_dim(mask, x.shape, range(first, first + mask.rank))
        return b.select(chosen, b.broadcast(b.reshape(values, ()), x.shape), x)
    if all(i is None for i in indices):
        values = b.broadcast(values, x.shape)
        return b.add(x, values) if accumulate else values
    at = _Advanced(b, x, indices)
    if prod(at.result) == 0 or x.count == 0:
        return x
    return b.scatter(x, at.coordinates, b.broadcast(values, at.result), window=at.offset, inserted=at.indexed, to_operand=at.indexed,
                     body="add" if accumulate else None)


@lowers(aten.embedding.default)
def embedding(b: Builder, weight: Value, indices: Value, *_) -> Value:
    return index(b, weight, [indices])


@lowers(aten.index_select.default)
def index_select(b: Builder, x: Value, dim: int, indices: Value) -> Value:
    if x.rank == 0:
        return x
    dim = dimension(dim, x.rank)
    return index(b, x, [None] * dim + [b.reshape(indices, (indices.count,))])


# --- along one dimension: an index for each element


def _coordinates(b: Builder, dim: int, indices: Value, size: int) -> Value:
    indices = _wrapped(b, indices, size)
    parts = [indices if d == dim else b.iota(indices.shape, d, torch.int64) for d in range(indices.rank)]
    return b.concatenate([b.reshape(part, indices.shape + (1,)) for part in parts], indices.rank)


@lowers(aten.gather.default)
def gather(b: Builder, x: Value, dim: int, indices: Value, *, sparse_grad=False) -> Value:
    if indices.count == 0 or x.count == 0:
        return b.full(indices.shape, 0, x.dtype)
    shape = indices.shape
    if x.rank == 0 or not shape:
        x, indices = b.reshape(x, x.shape or (1,)), b.reshape(indices, shape or (1,))
    every = list(range(x.rank))
    at = _coordinates(b, dimension(dim, x.rank), indices, x.shape[dimension(dim, x.rank)])
    return b.reshape(b.gather(x, at, offset_dims=[], collapsed=every, start_index_map=every, slice_sizes=[1] * x.rank, shape=indices.shape),
                     shape)


def _scatter_along(b: Builder, x: Value, dim: int, indices: Value, updates, body: str | None) -> Value:
    if indices.count == 0:
        return x
    shape = x.shape
    if not shape or not indices.shape:
        x, indices = b.reshape(x, x.shape or (1,)), b.reshape(indices, indices.shape or (1,))
    if is_number(updates):
        updates = b.full(indices.shape, updates, x.dtype)
    else:
        updates = b.reshape(updates, updates.shape or (1,))
        updates = b.convert(b.slice(updates, [0] * updates.rank, indices.shape), x.dtype)
    every, dim = list(range(x.rank)), dimension(dim, x.rank)
    at = _coordinates(b, dim, indices, x.shape[dim])
    return b.reshape(b.scatter(x, at, updates, window=[], inserted=every, to_operand=every, body=body), shape)


@lowers(*overloads(aten.scatter, "src", "value"))
def scatter(b: Builder, x: Value, dim: int, indices: Value, source) -> Value:
    return _scatter_along(b, x, dim, indices, source, None)


@lowers(aten.scatter_add.default)
def scatter_add(b: Builder, x: Value, dim: int, indices: Value, source: Value) -> Value:
    return _scatter_along(b, x, dim, indices, source, "add")


@lowers(*overloads(aten.scatter, "reduce", "value_reduce"))
def scatter_with(b: Builder, x: Value, dim: int, indices: Value, source, *, reduce: str) -> Value:
    return _scatter_along(b, x, dim, indices, source, {"add": "add", "multiply": "multiply"}[reduce])


def _identity(reduce: str, dtype: torch.dtype):
    return {"sum": 0, "mean": 0, "prod": 1, "amax": lowest(dtype), "amin": highest(dtype)}[reduce]


_BODIES = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


@lowers(aten.scatter_reduce.two)
def scatter_reduce(b: Builder, x: Value, dim: int, indices: Value, source: Value, reduce: str, *, include_self=True) -> Value:
    if indices.count == 0:
        return x
    start = x
    if not include_self:
        start = _scatter_along(b, x, dim, indices, _identity(reduce, x.dtype), None)
    result = _scatter_along(b, start, dim, indices, source, _BODIES[reduce])
    if reduce != "mean":
        return result
    count = b.like(x, 1 if include_self else 0)
    count = _scatter_along(b, count, dim, indices, 1, "add")
    count = b.op("maximum", count, b.like(count, 1))
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return b.divide(result, count)
    quotient = b.divide(result, count)  # Rounded down.
    rest = b.op("remainder", result, count)
    return b.select(b.compare(rest, b.like(rest, 0), "LT"), b.subtract(quotient, b.like(quotient, 1)), quotient)


@lowers(*overloads(aten.index_reduce, "default"))
def index_reduce(b: Builder, x: Value, dim: int, indices: Value, source: Value, reduce: str, *, include_self=True) -> Value:
    """scatter_reduce with one index for each slice of the source."""
    dim = dimension(dim, x.rank)
    index_shape = (indices.count,) if source.rank else ()
    each = b.broadcast_in_dim(b.reshape(indices, index_shape), source.shape, [dim] if source.rank else [])
    return scatter_reduce(b, x, dim, each, source, reduce, include_self=include_self)


@lowers(*overloads(aten.masked_scatter_backward, "default"))
def masked_scatter_backward(b: Builder, gradient: Value, mask: Value, sizes) -> Value:
    """What the n-th place of the mask got goes back to the n-th element."""
    count, mask = prod(sizes), b.reshape(b.broadcast(mask, gradient.shape), (gradient.count,))
    if count == 0 or gradient.count == 0:
        return b.full(sizes, 0, gradient.dtype)
    ones = b.convert(mask, torch.int64)
    place = b.subtract(b.reduce_window(ones, "add", 0, [mask.count], [1], [(mask.count - 1, 0)]), b.like(ones, 1))
    place = b.reshape(b.select(mask, place, b.like(place, count)), (mask.count, 1))  # Others have no place.
    taken = b.scatter(b.full((count,), 0, gradient.dtype), place, b.reshape(gradient, (mask.count,)), window=[], inserted=[0],
                      to_operand=[0], body="add")
    return b.reshape(taken, sizes)


@lowers(aten.masked_scatter.default)
def masked_scatter(b: Builder, x: Value, mask: Value, source: Value) -> Value:
    """The n-th place of the mask takes the n-th element of the source."""
    x = b.broadcast(x, b.out.shape)
    if x.count == 0 or source.count == 0:
        return x
    mask = b.reshape(b.broadcast(mask, x.shape), (x.count,))
    ones = b.convert(mask, torch.int64)
    place = b.subtract(b.reduce_window(ones, "add", 0, [x.count], [1], [(x.count - 1, 0)]), b.like(ones, 1))
    flat = b.reshape(b.convert(source, x.dtype), (source.count,))
    taken = b.gather(flat, b.reshape(place, (x.count, 1)), offset_dims=[], collapsed=[0], start_index_map=[0], slice_sizes=[1], shape=(x.count,))
    return b.reshape(b.select(mask, taken, b.reshape(x, (x.count,))), x.shape)


@lowers(*overloads(aten.take, "default"))
def take(b: Builder, x: Value, indices: Value) -> Value:
    return index(b, b.reshape(x, (x.count,)), [indices])



@lowers(*overloads(aten.put, "default"))
def put(b: Builder, x: Value, indices: Value, source: Value, accumulate=False) -> Value:
    flat = index_put(b, b.reshape(x, (x.count,)), [b.reshape(indices, (indices.count,))], b.reshape(source, (source.count,)), accumulate)
    return b.reshape(flat, x.shape)


# --- places in sorted sequences: how many elements are smaller


@lowers(*overloads(aten.searchsorted, "Tensor", "Scalar"))
def search_sorted(b: Builder, sequence: Value, values, *, out_int32=False, right=False, side=None, sorter=None) -> Value:
    if sorter is not None:
        sequence = gather(b, sequence, sequence.rank - 1, sorter)
    right = right or side == "right"
    dtype = result_type(sequence, values)
    values = b.constant(values, dtype) if is_number(values) else b.convert(values, dtype)
    sequence = b.convert(sequence, dtype)
    compared = _comparing(b, dtype, right)
    if sequence.shape[-1] > _FEW_TO_COMPARE:
        return b.convert(_by_halves(b, sequence, values, compared), b.out.dtype)
    lead = list(range(sequence.rank - 1)) if sequence.rank > 1 else []
    shape = values.shape + (sequence.shape[-1],)
    every = b.broadcast_in_dim(sequence, shape, lead + [values.rank])
    before = compared(every, b.broadcast_in_dim(values, shape, range(values.rank)))
    return b.convert(b.reduce(b.convert(before, torch.int32), [values.rank], "add", 0), b.out.dtype)


_FEW_TO_COMPARE = 32  # With so few elements all are compared at once.


def _comparing(b: Builder, dtype: torch.dtype, right: bool):
    """A function of elements and wanted values: whether an element is before the place of the value."""

    def compare(each: Value, wanted: Value) -> Value:
        if not dtype.is_floating_point:
            return b.compare(each, wanted, "LE" if right else "LT")
        # NaN is larger than every number.
        numbers, is_nan = b.compare(each, each, "EQ"), b.compare(wanted, wanted, "NE")
        before = b.op("and", numbers, b.op("not", b.compare(each, wanted, "GT" if right else "GE")))
        return b.op("or", before, is_nan if right else b.op("and", numbers, is_nan))

    return compare


def _by_halves(b: Builder, sequence: Value, values: Value, compared) -> Value:
    """Binary search of all values side by side: how many elements are before each, by its binary digits from the highest on."""
    length = sequence.shape[-1]
    if values.count == 0 or sequence.count == 0:
        return b.full(values.shape, 0, torch.int32)
    index_type = torch.int32 if sequence.count < 2**31 else torch.int64
    flat = b.reshape(sequence, (sequence.count,))
    rows = b.full(values.shape, 0, index_type)
    for dim in range(sequence.rank - 1):
        rows = b.add(b.multiply(rows, b.like(rows, sequence.shape[dim])), b.iota(values.shape, dim, index_type))
    first = b.multiply(rows, b.like(rows, length))
    found = b.full(values.shape, 0, index_type)
    for digit in reversed(range(length.bit_length())):
        next_one = b.add(found, b.like(found, 1 << digit))
        last = b.op("minimum", next_one, b.like(found, length))
        place = b.reshape(b.subtract(b.add(first, last), b.like(found, 1)), (values.count, 1))
        each = b.gather(flat, place, offset_dims=[], collapsed=[0], start_index_map=[0], slice_sizes=[1], shape=(values.count,))
        is_before = b.op("and", compared(b.reshape(each, values.shape), values), b.compare(next_one, b.like(found, length), "LE"))
        found = b.select(is_before, next_one, found)
    return found


@lowers(*overloads(aten.bucketize, "Tensor", "Scalar"))
def bucketize(b: Builder, values, boundaries: Value, *, out_int32=False, right=False) -> Value:
    return search_sorted(b, boundaries, values, right=right)


# --- bags of embeddings


@lowers(*overloads(aten._embedding_bag, "default"), *overloads(aten._embedding_bag_forward_only, "default"))
def embedding_bag(b: Builder, weight: Value, indices: Value, offsets: Value, scale_grad_by_freq=False, mode=0, sparse=False, weights=None,
                  include_last_offset=False, padding_idx=-1):
    """Sums, means or maxima of the rows that each bag names; a bag ends where the next one begins."""
    bags, count = b.out[0].shape[0], indices.count
    if count == 0 or bags == 0 or weight.count == 0:
        return tuple(b.full(each.shape, 0, each.dtype) for each in b.out)
    starts = b.narrow(b.convert(offsets, torch.int64), 0, 0, bags)
    # How many bags have begun at each place; a bag that begins behind the last one has no place.
    begun = b.scatter(b.full((count,), 0, torch.int64), b.reshape(starts, (bags, 1)), b.full((bags,), 1, torch.int64), window=[], inserted=[0],
                      to_operand=[0], body="add")
    bag = b.subtract(b.reduce_window(begun, "add", 0, [count], [1], [(count - 1, 0)]), b.full((count,), 1, torch.int64))
    kept = b.full((count,), True, torch.bool)
    if padding_idx >= 0:
        kept = b.compare(b.convert(indices, torch.int64), b.full((count,), padding_idx, torch.int64), "NE")
    # What is left out goes to a bag that there is not.
    target = b.reshape(b.select(kept, bag, b.like(bag, bags)), (count, 1))
    sizes = b.scatter(b.full((bags,), 0, torch.int64), target, b.full((count,), 1, torch.int64), window=[], inserted=[0], to_operand=[0], body="add")
    rows = index(b, weight, [indices])
    if weights is not None:
        rows = b.multiply(rows, b.broadcast_in_dim(b.convert(weights, rows.dtype), rows.shape, [0]))
    shape = (bags, weight.shape[1])
    init = b.full(shape, lowest(rows.dtype) if mode == 2 else 0, rows.dtype)
    total = b.scatter(init, target, rows, window=[1], inserted=[0], to_operand=[0], body="maximum" if mode == 2 else "add")
    if mode == 1:
        divisor = b.convert(b.op("maximum", sizes, b.like(sizes, 1)), total.dtype)
        total = b.divide(total, b.broadcast_in_dim(divisor, shape, [0]))
    if mode == 2:
        empty = b.broadcast_in_dim(b.compare(sizes, b.like(sizes, 0), "EQ"), shape, [0])
        total = b.select(empty, b.full(shape, 0, total.dtype), total)
    places = _places_of_maxima(b, rows, total, target, indices) if mode == 2 else None
    return (total, *_bag_results(b, bag, sizes, places))


def _places_of_maxima(b: Builder, rows: Value, maxima: Value, target: Value, indices: Value) -> Value:
    """The row of the weights that each element of a bag's maximum comes from: the first of equal ones. 0 for empty bags."""
    (bags, width), count = maxima.shape, indices.count
    own = b.gather(maxima, b.op("clamp", b.like(target, 0), target, b.like(target, bags - 1)), offset_dims=[1], collapsed=[0], start_index_map=[0],
                   slice_sizes=[1, width], shape=rows.shape)
    order = b.iota(rows.shape, 0, torch.int64)
    is_own = b.op("or", b.compare(rows, own, "EQ"), b.op("and", b.compare(rows, rows, "NE"), b.compare(own, own, "NE")))
    order = b.select(is_own, order, b.like(order, count))
    first = b.scatter(b.full(maxima.shape, count, torch.int64), target, order, window=[1], inserted=[0], to_operand=[0], body="minimum")
    none = b.compare(first, b.like(first, count), "EQ")
    place = b.reshape(b.select(none, b.like(first, 0), first), (*first.shape, 1))
    found = b.gather(b.convert(indices, torch.int64), place, offset_dims=[], collapsed=[0], start_index_map=[0], slice_sizes=[1], shape=first.shape)
    return b.select(none, b.like(found, 0), found)


def _bag_results(b: Builder, bag: Value, sizes: Value, places: Value | None):
    """The further results, where they have the sizes that the gradients need."""
    found = []
    for value, out in zip((bag, sizes, places), b.out[1:]):
        fits = value is not None and value.shape == out.shape
        found.append(b.convert(value, out.dtype) if fits else b.full(out.shape, 0, out.dtype))
    return found
