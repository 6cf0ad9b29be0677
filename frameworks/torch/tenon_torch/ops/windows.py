"""Pooling, and its gradients."""

import torch

from ..builder import Builder, Value, array
from ..table import Unsupported, aten, lowers, overloads, prod, twice, wide
from ..types import lowest, tensor_type
from .bands import Bands, averaging, bands_of, multiply
from .indexing import index_select


class _Pool:
    """The windows of a pooling op over the last dimensions of [batch, channels, …] or [channels, …]."""

    def __init__(self, x: Value, rank: int, kernel, stride, padding, dilation=1, out=None):
        self.lead, self.sizes = x.rank - rank, x.shape[x.rank - rank:]
        self.kernel, self.padding, self.dilation = twice(kernel, rank), twice(padding, rank), twice(dilation, rank)
        self.stride = twice(stride, rank) if not isinstance(stride, (list, tuple)) or stride else self.kernel
        self.out = list(out[len(out) - rank:])
        # Up to the end of the last window, which with ceil_mode may lie behind the padding.
        self.high = [max(0, (o - 1) * s + d * (k - 1) + 1 - n - p) for o, s, d, k, n, p in
                     zip(self.out, self.stride, self.dilation, self.kernel, self.sizes, self.padding)]

    def dims(self, values, fill=1) -> list:
        return [fill] * self.lead + list(values)

    def reduce(self, b: Builder, x: Value, name: str, init) -> Value:
        return b.reduce_window(x, name, init, self.dims(self.kernel), self.dims(self.stride),
                               self.dims(zip(self.padding, self.high), (0, 0)), self.dims(self.dilation))

    @property
    def tiles(self) -> bool:
        """Windows lie side by side, and each element is in one at most."""
        return (self.stride == self.kernel and not any(self.padding) and not any(self.high) and all(d == 1 for d in self.dilation))

    def tile_shape(self, x: Value) -> tuple:
        return (*x.shape[:self.lead], *(each for pair in zip(self.out, self.kernel) for each in pair))

    def spread(self, b: Builder, y: Value, x: Value) -> Value:
        """To each place of a window what `y` has of the window."""
        return b.broadcast_in_dim(y, self.tile_shape(x), [*range(self.lead), *(self.lead + 2 * i for i in range(len(self.out)))])

    def from_tiles(self, b: Builder, y: Value, x: Value) -> Value:
        whole = [*x.shape[:self.lead], *(o * k for o, k in zip(self.out, self.kernel))]
        rest = self.dims([n - each for n, each in zip(self.sizes, whole[self.lead:])], 0)
        return b.pad(b.reshape(y, whole), b.constant(0, y.dtype), [0] * x.rank, rest)

    def counts(self, include_padding: bool, divisor) -> "torch.Tensor | float":
        """The number that each window is divided by."""
        if divisor:
            return float(divisor)
        each = []
        for o, s, k, n, p in zip(self.out, self.stride, self.kernel, self.sizes, self.padding):
            starts = [i * s - p for i in range(o)]
            if include_padding:
                each.append([min(start + k, n + p) - start for start in starts])
            else:
                each.append([min(start + k, n) - max(start, 0) for start in starts])
        if all(len(set(counts)) == 1 for counts in each):
            return float(prod(counts[0] for counts in each))
        table = torch.tensor(each[0], dtype=torch.float32, device="cpu")
        for counts in each[1:]:
            table = table[..., None] * torch.tensor(counts, dtype=torch.float32, device="cpu")
        return table


def _divided(b: Builder, x: Value, counts) -> Value:
    if isinstance(counts, float):
        return b.divide(x, b.like(x, counts))
    return b.divide(x, b.broadcast(b.convert(b.tensor(counts), x.dtype), x.shape))


def _average(rank: int):
    def lower(b: Builder, x: Value, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) -> Value:
        pool = _Pool(x, rank, kernel, stride, padding, out=b.out.shape)
        total = pool.reduce(b, b.convert(x, wide(x.dtype)), "add", 0)
        return b.convert(_divided(b, total, pool.counts(count_include_pad, divisor_override)), x.dtype)

    return lower


def _average_backward(rank: int):
    def lower(b: Builder, gradient: Value, x: Value, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override) -> Value:
        pool = _Pool(x, rank, kernel, stride, padding, out=gradient.shape)
        share = _divided(b, b.convert(gradient, wide(gradient.dtype)), pool.counts(count_include_pad, divisor_override))
        if pool.tiles:
            return b.convert(pool.from_tiles(b, pool.spread(b, share, x), x), gradient.dtype)
        low = [k - 1 - p for k, p in zip(pool.kernel, pool.padding)]
        high = [n + k - 1 - (o - 1) * s - 1 - a for n, k, o, s, a in zip(pool.sizes, pool.kernel, pool.out, pool.stride, low)]
        spread = b.pad(share, b.constant(0, share.dtype), pool.dims(low, 0), pool.dims(high, 0), pool.dims([s - 1 for s in pool.stride], 0))
        total = b.reduce_window(spread, "add", 0, pool.dims(pool.kernel), [1] * x.rank, [(0, 0)] * x.rank)
        return b.convert(total, gradient.dtype)

    return lower


lowers(aten.avg_pool2d.default)(_average(2))
lowers(aten.avg_pool3d.default)(_average(3))
lowers(*overloads(aten.avg_pool1d, "default"))(_average(1))
lowers(aten.avg_pool2d_backward.default)(_average_backward(2))
lowers(aten.avg_pool3d_backward.default)(_average_backward(3))


def _max_places(b: Builder, x: Value, pool: _Pool) -> Value:
    """The place of the first largest element of each window, counted within the spatial dimensions: the windows' elements are laid
    beside each other and compared one by one."""
    bottom = lowest(x.dtype)
    padded = b.pad(x, b.constant(bottom, x.dtype), pool.dims(pool.padding, 0), pool.dims(pool.high, 0))
    best = place = None
    shape = list(x.shape[:pool.lead]) + pool.out
    origin = b.full(shape, 0, torch.int64)
    for i, (o, s, p) in enumerate(zip(pool.out, pool.stride, pool.padding)):
        at = b.iota(shape, pool.lead + i, torch.int64)
        at = b.subtract(b.multiply(at, b.like(at, s)), b.like(at, p))
        origin = b.add(b.multiply(origin, b.like(origin, pool.sizes[i])), at)
    for number in range(prod(pool.kernel)):
        offsets, rest = [], number
        for k in reversed(pool.kernel):
            offsets.insert(0, rest % k)
            rest //= k
        start = pool.dims([o * d for o, d in zip(offsets, pool.dilation)], 0)
        limit = list(padded.shape[:pool.lead]) + [a + (o - 1) * s + 1 for a, o, s in zip(start[pool.lead:], pool.out, pool.stride)]
        element = b.slice(padded, start, limit, pool.dims(pool.stride))
        step = 0
        for o, d, n in zip(offsets, pool.dilation, pool.sizes):
            step = step * n + o * d
        here = b.add(origin, b.like(origin, step))
        if best is None:
            best, place = element, here
            # Padding is never the place of the largest element: what lies inside replaces it below.
            outside = _outside(b, shape, pool, offsets)
            continue
        better = b.compare(element, best, "GT")
        if x.dtype.is_floating_point:
            better = b.op("or", better, b.compare(element, element, "NE"))
        inside = b.op("not", _outside(b, shape, pool, offsets))
        better = b.op("and", inside, b.op("or", better, outside))
        outside = b.op("and", outside, b.op("not", inside))
        best, place = b.select(better, element, best), b.select(better, here, place)
    return place


def _outside(b: Builder, shape, pool: _Pool, offsets) -> Value:
    """Whether this element of each window lies in the padding."""
    out = b.full(shape, False, torch.bool)
    for i, (s, p, o, d, n) in enumerate(zip(pool.stride, pool.padding, offsets, pool.dilation, pool.sizes)):
        starts = range(o * d - p, o * d - p + pool.out[i] * s, s)
        if all(0 <= start < n for start in starts):
            continue
        at = b.iota(shape, pool.lead + i, torch.int64)
        at = b.add(b.multiply(at, b.like(at, s)), b.like(at, o * d - p))
        out = b.op("or", out, b.op("or", b.compare(at, b.like(at, 0), "LT"), b.compare(at, b.like(at, n), "GE")))
    return out


def _max(rank: int):
    def lower(b: Builder, x: Value, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
        pool = _Pool(x, rank, kernel, stride, padding, dilation, out=b.out[0].shape)
        return pool.reduce(b, x, "maximum", lowest(x.dtype)), _max_places(b, x, pool)

    return lower


lowers(aten.max_pool2d_with_indices.default)(_max(2))
lowers(aten.max_pool3d_with_indices.default)(_max(3))


def _scatter_places(b: Builder, gradient: Value, places: Value, x: Value, rank: int) -> Value:
    lead = x.rank - rank
    rows, inner, outer = prod(x.shape[:lead]), prod(x.shape[lead:]), prod(gradient.shape[lead:])
    flat, at = b.reshape(gradient, (rows, outer)), b.reshape(places, (rows, outer))
    row = b.iota(at.shape, 0, torch.int64)
    coordinates = b.concatenate([b.reshape(each, (rows, outer, 1)) for each in (row, at)], 2)
    zeros = b.full((rows, inner), 0, gradient.dtype)
    return b.reshape(b.scatter(zeros, coordinates, flat, window=[], inserted=[0, 1], to_operand=[0, 1], body="add"), x.shape)


def _max_backward(rank: int):
    def lower(b: Builder, gradient: Value, x: Value, kernel, stride, padding, dilation, ceil_mode, places: Value) -> Value:
        return _scatter_places(b, gradient, places, x, rank)

    return lower


lowers(aten.max_pool2d_with_indices_backward.default)(_max_backward(2))
lowers(aten.max_pool3d_with_indices_backward.default)(_max_backward(3))


def select_and_scatter(b: Builder, gradient: Value, x: Value, rank: int, kernel, stride, padding) -> Value:
    """The gradient of a largest element from the input itself: the first one of a window takes it, or its last NaN."""
    pool = _Pool(x, rank, kernel, stride, padding, out=gradient.shape)
    scalar = tensor_type((), x.dtype)
    compare = f"({scalar}, {scalar}) -> tensor<i1>"
    zero = b.constant(0, x.dtype)
    # The op's own padding: its places are never selected, not even where all elements of a window are -inf.
    padding = ", ".join(f"[{low}, {high}]" for low, high in pool.dims(zip(pool.padding, pool.high), (0, 0)))
    result = b.value(x.shape, x.dtype)
    b.lines.append(
        f'{result.name} = "stablehlo.select_and_scatter"({x.name}, {gradient.name}, {zero.name}) <{{window_dimensions = '
        f"{array(pool.dims(pool.kernel))}, window_strides = {array(pool.dims(pool.stride))}, "
        f"padding = dense<[{padding}]> : tensor<{x.rank}x2xi64>}}> "
        f'({{\n^bb0(%a: {scalar}, %b: {scalar}):\n'
        f'  %g = "stablehlo.compare"(%a, %b) <{{comparison_direction = #stablehlo<comparison_direction GE>}}> : {compare}\n'
        f'  %n = "stablehlo.compare"(%a, %a) <{{comparison_direction = #stablehlo<comparison_direction NE>}}> : {compare}\n'
        f'  %m = "stablehlo.compare"(%b, %b) <{{comparison_direction = #stablehlo<comparison_direction EQ>}}> : {compare}\n'
        f"  %o = stablehlo.or %g, %n : tensor<i1>\n  %c = stablehlo.and %o, %m : tensor<i1>\n  stablehlo.return %c : tensor<i1>\n}}, "
        f"{{\n^bb0(%a: {scalar}, %b: {scalar}):\n  %c = stablehlo.add %a, %b : {scalar}\n  stablehlo.return %c : {scalar}\n}}) : "
        f"({x.type}, {gradient.type}, {scalar}) -> {result.type}")
    return result


# --- adaptive averages: the sizes of the windows differ by one


def _adaptive(rank: int):
    def lower(b: Builder, x: Value, size) -> Value:
        sizes, out = x.shape[x.rank - rank:], b.out.shape[x.rank - rank:]
        wider = b.convert(x, wide(x.dtype))
        if prod(b.out.shape) == 0:
            return b.full(b.out.shape, 0, x.dtype)
        if all(n % o == 0 for n, o in zip(sizes, out)):
            step = [n // o for n, o in zip(sizes, out)]
            split = b.reshape(wider, x.shape[:x.rank - rank] + tuple(each for pair in zip(out, step) for each in pair))
            total = b.reduce(split, [x.rank - rank + 2 * i + 1 for i in range(rank)], "add", 0)
            return b.convert(b.divide(total, b.like(total, prod(step))), x.dtype)
        return b.convert(multiply(b, wider, [averaging(n, o, wider.dtype) for n, o in zip(sizes, out)]), x.dtype)

    return lower


def _adaptive_backward(rank: int):
    def lower(b: Builder, gradient: Value, x: Value) -> Value:
        lead, sizes, out = x.rank - rank, x.shape[x.rank - rank:], gradient.shape[x.rank - rank:]
        wider = b.convert(gradient, wide(gradient.dtype))
        if gradient.count == 0:
            return b.like(x, 0)
        if all(n % o == 0 for n, o in zip(sizes, out)):
            step = [n // o for n, o in zip(sizes, out)]
            share = b.divide(wider, b.like(wider, prod(step)))
            spread = x.shape[:lead] + tuple(each for pair in zip(out, step) for each in pair)
            places = list(range(lead)) + [lead + 2 * i for i in range(rank)]
            return b.convert(b.reshape(b.broadcast_in_dim(share, spread, places), x.shape), x.dtype)
        return b.convert(multiply(b, wider, [averaging(n, o, wider.dtype).transposed for n, o in zip(sizes, out)]), x.dtype)

    return lower


for _rank, _packets in ((2, (aten._adaptive_avg_pool2d, aten._adaptive_avg_pool2d_backward)),
                        (3, (aten._adaptive_avg_pool3d, aten._adaptive_avg_pool3d_backward))):
    lowers(_packets[0].default)(_adaptive(_rank))
    lowers(_packets[1].default)(_adaptive_backward(_rank))


def _adaptive_windows(b: Builder, x: Value, rank: int, out) -> tuple[Value, Value]:
    """The elements of the windows as [lead…, out, kernel, out, kernel, …], and the place of each within the spatial dimensions.
    Windows that are shorter than the longest have their last element several times."""
    lead, sizes = x.rank - rank, x.shape[x.rank - rank:]
    shape, tables = list(x.shape[:lead]), []
    for i, (n, o) in enumerate(zip(sizes, out)):
        longest = max(-(-(j + 1) * n // o) - j * n // o for j in range(o))
        window, within = (b.iota((o, longest), d, torch.int64) for d in range(2))
        start = b.divide(b.multiply(window, b.like(window, n)), b.like(window, o))
        end = b.divide(b.add(b.multiply(window, b.like(window, n)), b.like(window, n + o - 1)), b.like(window, o))
        table = b.op("minimum", b.add(start, within), b.subtract(end, b.like(end, 1)))
        if n != o * longest:
            x = index_select(b, x, lead + i, b.reshape(table, (o * longest,)))
        shape += [o, longest]
        tables.append(table)
    place = b.full(shape, 0, torch.int32 if prod(sizes) < 2**31 else torch.int64)
    for i, (n, table) in enumerate(zip(sizes, tables)):
        here = b.broadcast_in_dim(b.convert(table, place.dtype), shape, [lead + 2 * i, lead + 2 * i + 1])
        place = b.add(b.multiply(place, b.like(place, n)), here)
    return b.reshape(x, shape), place


def _adaptive_max(rank: int):
    def lower(b: Builder, x: Value, size):
        """The largest element of each window and its first place, or that of its last NaN."""
        lead, out = x.rank - rank, b.out[0].shape[x.rank - rank:]
        if prod(b.out[0].shape) == 0:
            return b.full(b.out[0].shape, 0, x.dtype), b.full(b.out[0].shape, 0, torch.int64)
        windows, place = _adaptive_windows(b, x, rank, out)
        over, nowhere = [lead + 2 * i + 1 for i in range(rank)], torch.iinfo(place.dtype).max
        value = b.reduce(windows, over, "maximum", lowest(x.dtype))
        each = b.broadcast_in_dim(value, windows.shape, [*range(lead), *(lead + 2 * i for i in range(rank))])
        first = b.reduce(b.select(b.compare(windows, each, "EQ"), place, b.like(place, nowhere)), over, "minimum", nowhere)
        if x.dtype.is_floating_point:
            last_nan = b.reduce(b.select(b.compare(windows, windows, "NE"), place, b.like(place, -1)), over, "maximum", -1)
            first = b.select(b.compare(last_nan, b.like(last_nan, 0), "GE"), last_nan, first)
        return value, b.convert(first, torch.int64)

    return lower


def _adaptive_max_backward(rank: int):
    def lower(b: Builder, gradient: Value, x: Value, places: Value) -> Value:
        return _scatter_places(b, gradient, places, x, rank)

    return lower


for _rank in (2, 3):
    lowers(getattr(aten, f"adaptive_max_pool{_rank}d").default)(_adaptive_max(_rank))
    lowers(getattr(aten, f"adaptive_max_pool{_rank}d_backward").default)(_adaptive_max_backward(_rank))


# --- gradients of interpolation: a matrix for each dimension, which PyTorch's own kernel for one dimension gives


def _cubic(rows: torch.Tensor, out, corners, scale) -> torch.Tensor:
    return aten.upsample_bicubic2d.default(rows[..., None], [*out, 1], corners, scale, None)[..., 0]


def _interpolate_backward(kind, rank: int, corners: bool):
    def lower(b: Builder, gradient: Value, output_size, input_size, *rest) -> Value:
        words = list(rest[:1]) if corners else []
        scales = list(rest[1:] if corners else rest) or [None] * rank
        wider = b.convert(gradient, wide(gradient.dtype))
        sizes = zip(list(input_size)[-rank:], gradient.shape[-rank:], scales)
        matrices = [bands_of(lambda x: kind(x, [o], *words, scale), n, o, 2, wider.dtype).transposed for n, o, scale in sizes]  # noqa: B023
        return b.convert(multiply(b, wider, matrices), gradient.dtype)

    return lower


_OF_ONE = (aten.upsample_nearest1d.default, aten._upsample_nearest_exact1d.default, aten.upsample_linear1d.default, _cubic)
for _rank, _names in ((1, ("upsample_nearest1d_backward", "_upsample_nearest_exact1d_backward", "upsample_linear1d_backward")),
                      (2, ("upsample_nearest2d_backward", "_upsample_nearest_exact2d_backward", "upsample_bilinear2d_backward",
                           "upsample_bicubic2d_backward")),
                      (3, ("upsample_nearest3d_backward", "_upsample_nearest_exact3d_backward", "upsample_trilinear3d_backward"))):
    for _name, _kind, _corners in zip(_names, _OF_ONE, (False, False, True, True)):
        lowers(*overloads(getattr(aten, _name), "default"))(_interpolate_backward(_kind, _rank, _corners))


# --- Resizes without aliasing: the filter of each dimension is a matrix too


def _smoothing(kind, size: int, out: int, corners, scale, dtype: torch.dtype) -> Bands:
    def resize(x):
        # Two columns: PyTorch 2.13 gives wrong rows for one.
        return kind(x[..., None].expand(*x.shape, 2).contiguous(), [out, 2], corners, scale, None)[..., 0]

    steps = [1, size / out, 1 / scale if scale else 1, (size - 1) / (out - 1) if out > 1 else 1]
    return bands_of(resize, size, out, 2 * max(steps), dtype)


def _smooth(kind):
    def lower(b: Builder, x: Value, output_size, align_corners, *scales) -> Value:
        if not x.dtype.is_floating_point:
            raise Unsupported("a resize of integers without aliasing")
        wider = b.convert(x, wide(x.dtype))
        sizes = zip(x.shape[-2:], output_size, list(scales) or [None, None])
        return b.convert(multiply(b, wider, [_smoothing(kind, n, o, align_corners, scale, wider.dtype) for n, o, scale in sizes]), x.dtype)

    return lower


def _smooth_backward(kind):
    def lower(b: Builder, gradient: Value, output_size, input_size, align_corners, *scales) -> Value:
        wider = b.convert(gradient, wide(gradient.dtype))
        sizes = zip(input_size[-2:], output_size, list(scales) or [None, None])
        matrices = [_smoothing(kind, n, o, align_corners, scale, wider.dtype).transposed for n, o, scale in sizes]
        return b.convert(multiply(b, wider, matrices), gradient.dtype)

    return lower


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    lowers(getattr(aten, _name).default)(_smooth(getattr(aten, _name).default))
    lowers(getattr(aten, _name + "_backward").default)(_smooth_backward(getattr(aten, _name).default))
