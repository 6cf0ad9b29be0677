"""grid_sampler_2d and grid_sampler_3d: places, weights and their slopes are computed once for all channels.

Interpolation 0 is bilinear, 1 nearest, 2 bicubic; padding 0 is zeros, 1 the border, 2 reflection."""

import functools
import itertools
import math
import operator
from typing import Any, NamedTuple

import torch

aten = torch.ops.aten


class Tap(NamedTuple):
    """A place along one dimension that results take elements of, for each result: how far it lies from the first element, whether it is
    inside (None: each is), the weight of its elements, and by how much the weight grows with the coordinate of the grid."""

    offset: Any
    inside: Any
    weight: Any
    slope: Any


def _clamped(place, size: int):
    """Into [0, size - 1], a NaN to 0, and the slope, which is 0 at both ends, as PyTorch's own is."""
    slope = ((place > 0) & (place < size - 1)).to(place.dtype)
    return torch.where(place > 0, torch.where(place < size - 1, place, size - 1.0), 0.0), slope


def _reflected(place, size: int, align_corners: bool):
    """Into [0, size - 1], by reflection at the centers of the outermost elements or at their edges; and the slope."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(place), torch.zeros_like(place)
    distance = (place - low).abs()
    is_even, rest = torch.floor(distance / span) % 2 == 0, torch.fmod(distance, span)
    result, slope = _clamped(torch.where(is_even, rest + low, span - rest + low), size)
    return result, torch.where(is_even == (place >= low), slope, -slope)


def _padded(place, size: int, padding: int, align_corners: bool):
    if padding == 0:
        return place, torch.ones_like(place)
    return _clamped(place, size) if padding == 1 else _reflected(place, size, align_corners)


def _cubic(t):
    """Weights of the places -1, 0, 1, 2 around one at the fraction t, by Keys' kernel with a = -0.75, and their slopes."""
    a = -0.75
    near, by_near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1, lambda d: (3 * (a + 2) * d - 2 * (a + 3)) * d
    far, by_far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, lambda d: (3 * a * d - 10 * a) * d + 8 * a
    return ((far(t + 1), near(t), near(1 - t), far(2 - t)), (by_far(t + 1), by_near(t), -by_near(1 - t), -by_far(2 - t)))


def _taps(coordinate, size: int, interpolation: int, padding: int, align_corners: bool) -> list[tuple]:
    """Of each tap the place, the weight and its slope, and whether a place can be outside."""
    scale = (size - 1) / 2 if align_corners else size / 2
    place = (coordinate + 1) * scale if align_corners else ((coordinate + 1) * size - 1) / 2
    if interpolation == 2:
        first = place.floor()
        weights, slopes = _cubic(place - first)
        return [(_padded(first + (i - 1), size, padding, align_corners)[0], weight, slope * scale, padding == 0)
                for i, (weight, slope) in enumerate(zip(weights, slopes))]
    place, slope = _padded(place, size, padding, align_corners)
    if interpolation == 1:
        return [(place.round(), torch.ones_like(place), torch.zeros_like(place), padding == 0)]
    first, slope = place.floor(), slope * scale
    fraction = place - first
    return [(first, 1 - fraction, -slope, padding == 0), (first + 1, fraction, slope, True)]


def _product(factors):
    return functools.reduce(operator.mul, factors)


_FEW_CHANNELS = 8


class _Sampler:
    """x [n, c, h, w] at the places grid [n, y, x, 2], or x [n, c, d, h, w] at grid [n, z, y, x, 3], whose last coordinate is the first of x.

    With `by_rows` the elements of all channels lie together, so that each place is one row to read and to add to: all is [n * places, c].
    Without, for few places of a large image, and few channels to read, all is [n, c, places].

    PyTorch takes some 100 microseconds to trace an op, and a cubic image has 16 corners: what is of one dimension is computed for its
    taps, and little for each corner."""

    def __init__(self, x, grid, interpolation: int, padding: int, align_corners: bool, by_rows: bool):
        self.count, self.channels, *self.sizes = x.shape
        self.result, rank = grid.shape[1:-1], len(self.sizes)
        self.by_rows = by_rows and math.prod(self.result) >= math.prod(self.sizes) // 4
        self.flat = self.flattened(x)
        # One number for each result, as it is multiplied with what is flat.
        self.numbers = (self.count * math.prod(self.result), 1) if self.by_rows else (self.count, 1, math.prod(self.result))
        self.taps = [self.taps_of(i, _taps(grid[..., rank - 1 - i].reshape(self.numbers), size, interpolation, padding, align_corners))
                     for i, size in enumerate(self.sizes)]

    def taps_of(self, dimension: int, taps: list[tuple]) -> list[Tap]:
        found, size, stride = [], self.sizes[dimension], math.prod(self.sizes[dimension + 1:])
        for place, weight, slope, may_be_outside in taps:
            inside = (place >= 0) & (place < size) if may_be_outside else None
            offset = (place if inside is None else torch.where(inside, place, 0)).to(torch.int64)
            offset = offset * stride if stride != 1 else offset
            if dimension == 0 and self.by_rows:  # Rows of all images follow one another.
                first = torch.arange(self.count, device=place.device) * math.prod(self.sizes)
                offset = offset + first[:, None].expand(self.count, math.prod(self.result)).reshape(self.numbers)
            found.append(Tap(offset, inside, weight, slope))
        return found

    def flattened(self, x):
        flat = x.flatten(2)
        return flat.transpose(1, 2).reshape(self.count * flat.shape[2], self.channels) if self.by_rows else flat

    def restored(self, flat, sizes):
        """As [n, c, …], in the order of its dimensions."""
        if self.by_rows:
            flat = flat.reshape(self.count, math.prod(sizes), self.channels).transpose(1, 2)
        return flat.reshape(self.count, self.channels, *sizes).contiguous()

    def corners(self):
        """A tap of each dimension, in every combination, with its place among what is flat, as `at` and `add` take it."""
        for corner in itertools.product(*self.taps):
            place = functools.reduce(operator.add, (tap.offset for tap in corner))
            place = place.reshape(-1) if self.by_rows else place.expand(self.count, self.channels, place.shape[2])
            inside = [tap.inside for tap in corner if tap.inside is not None]
            yield corner, place, functools.reduce(operator.and_, inside) if inside else None

    def at(self, place, inside):
        """The elements, 0 outside."""
        found = self.flat[place] if self.by_rows else self.flat.gather(2, place)
        return found if inside is None else torch.where(inside, found, 0)

    def add(self, to, place, inside, share):
        """To what is like `flat`."""
        share = share if inside is None else torch.where(inside, share, 0)
        return aten.index_put(to, [place], share, True) if self.by_rows else to.scatter_add(2, place, share)


def grid_sampler(x, grid, interpolation: int = 0, padding: int = 0, align_corners: bool = False):
    sampler = _Sampler(x, grid, interpolation, padding, align_corners, x.shape[1] >= _FEW_CHANNELS and interpolation != 1)
    shares = (sampler.at(*where) * _product(tap.weight for tap in corner) for corner, *where in sampler.corners())
    return sampler.restored(functools.reduce(operator.add, shares), sampler.result)


def grid_sampler_backward(gradient, x, grid, interpolation: int, padding: int, align_corners: bool, wanted):
    """By x, if it is wanted, and by grid."""
    sampler = _Sampler(x, grid, interpolation, padding, align_corners, True)
    gradient, by_x, slopes = sampler.flattened(gradient), torch.zeros_like(sampler.flat), [[] for _ in sampler.sizes]
    for corner, *where in sampler.corners():
        if wanted[0]:
            by_x = sampler.add(by_x, *where, gradient * _product(tap.weight for tap in corner))
        if interpolation != 1:
            here = (sampler.at(*where) * gradient).sum(1, keepdim=True)
            for i, tap in enumerate(corner):
                slopes[i].append(here * _product([tap.slope, *(each.weight for j, each in enumerate(corner) if j != i)]))
    by_grid = (torch.zeros_like(grid) if interpolation == 1 else
               torch.stack([functools.reduce(operator.add, each).reshape(grid.shape[:-1]) for each in reversed(slopes)], -1))
    return sampler.restored(by_x, sampler.sizes) if wanted[0] else None, by_grid
