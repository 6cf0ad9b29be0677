"""grid_sampler_2d and grid_sampler_3d: places, weights and their slopes are computed once for all channels.

Interpolation 0 is bilinear, 1 nearest, 2 bicubic; padding 0 is zeros, 1 the border, 2 reflection."""

import itertools
import math
from typing import Any, NamedTuple

import torch

aten = torch.ops.aten


class Tap(NamedTuple):
    """A place along one dimension that results take elements of: its number, the weight of its elements, and by how much the weight
    grows with the coordinate of the grid. All are [n, …result]."""

    place: Any
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


def _taps(coordinate, size: int, interpolation: int, padding: int, align_corners: bool) -> list[Tap]:
    scale = (size - 1) / 2 if align_corners else size / 2
    place = (coordinate + 1) * scale if align_corners else ((coordinate + 1) * size - 1) / 2
    if interpolation == 2:
        first = place.floor()
        weights, slopes = _cubic(place - first)
        return [Tap(_padded(first + (i - 1), size, padding, align_corners)[0], weight, slope * scale)
                for i, (weight, slope) in enumerate(zip(weights, slopes))]
    place, slope = _padded(place, size, padding, align_corners)
    if interpolation == 1:
        return [Tap(place.round(), torch.ones_like(place), torch.zeros_like(place))]
    first, slope = place.floor(), slope * scale
    return [Tap(first, 1 - (place - first), -slope), Tap(first + 1, place - first, slope)]


_FEW_CHANNELS = 8


class _Sampler:
    """x [n, c, h, w] at the places grid [n, y, x, 2], or x [n, c, d, h, w] at grid [n, z, y, x, 3], whose last coordinate is the first of x.

    With `by_rows` the elements of all channels lie together, so that each place is one row to read and to add to: all is [n * places, c].
    Without, for few places of a large image, and few channels to read, all is [n, c, places]."""

    def __init__(self, x, grid, interpolation: int, padding: int, align_corners: bool, by_rows: bool):
        self.count, self.channels, *self.sizes = x.shape
        self.result, rank = grid.shape[1:-1], len(self.sizes)
        self.by_rows = by_rows and math.prod(self.result) >= math.prod(self.sizes) // 4
        self.flat = self.flattened(x)
        self.taps = [_taps(grid[..., rank - 1 - i], size, interpolation, padding, align_corners) for i, size in enumerate(self.sizes)]

    def flattened(self, x):
        flat = x.flatten(2)
        return flat.transpose(1, 2).reshape(self.count * flat.shape[2], self.channels) if self.by_rows else flat

    def restored(self, flat, sizes):
        """As [n, c, …], in the order of its dimensions."""
        if self.by_rows:
            flat = flat.reshape(self.count, math.prod(sizes), self.channels).transpose(1, 2)
        return flat.reshape(self.count, self.channels, *sizes).contiguous()

    def for_channels(self, numbers):
        """One number a place, to be multiplied with what is flat."""
        return numbers.reshape(-1, 1) if self.by_rows else numbers.reshape(self.count, 1, math.prod(self.result))

    def corners(self):
        """A tap of each dimension, in every combination."""
        return itertools.product(*self.taps)

    def places(self, corner):
        """Of each result, as `at` and `add` take it, and whether it is inside."""
        inside, place = True, 0
        for tap, size in zip(corner, self.sizes):
            inside = (tap.place >= 0) & (tap.place < size) & inside
            place = place * size + tap.place.to(torch.int64)
        place = torch.where(inside, place, 0).reshape(self.count, math.prod(self.result))
        if self.by_rows:
            first = torch.arange(self.count, device=place.device)[:, None] * math.prod(self.sizes)
            place = (place + first).reshape(place.numel())
        else:
            place = place[:, None].expand(self.count, self.channels, place.shape[1])
        return place, self.for_channels(inside)

    def at(self, corner):
        """The elements, 0 outside."""
        place, inside = self.places(corner)
        return torch.where(inside, self.flat[place] if self.by_rows else self.flat.gather(2, place), 0)

    def add(self, to, corner, share):
        """To what is like `flat`."""
        place, inside = self.places(corner)
        share = torch.where(inside, share, 0)
        return aten.index_put(to, [place], share, True) if self.by_rows else to.scatter_add(2, place, share)


def grid_sampler(x, grid, interpolation: int = 0, padding: int = 0, align_corners: bool = False):
    sampler = _Sampler(x, grid, interpolation, padding, align_corners, x.shape[1] >= _FEW_CHANNELS and interpolation != 1)
    total = sum(sampler.at(corner) * sampler.for_channels(math.prod(tap.weight for tap in corner)) for corner in sampler.corners())
    return sampler.restored(total, sampler.result)


def grid_sampler_backward(gradient, x, grid, interpolation: int, padding: int, align_corners: bool, wanted):
    """By x, if it is wanted, and by grid."""
    sampler = _Sampler(x, grid, interpolation, padding, align_corners, True)
    gradient, by_x, by_grid = sampler.flattened(gradient), torch.zeros_like(sampler.flat), [0] * len(sampler.sizes)
    for corner in sampler.corners():
        if wanted[0]:
            by_x = sampler.add(by_x, corner, gradient * sampler.for_channels(math.prod(tap.weight for tap in corner)))
        if interpolation != 1:
            here = (sampler.at(corner) * gradient).sum(1).reshape(grid.shape[:-1])
            for i, tap in enumerate(corner):
                by_grid[i] = by_grid[i] + here * math.prod((each.weight for j, each in enumerate(corner) if j != i), start=tap.slope)
    by_grid = torch.zeros_like(grid) if interpolation == 1 else torch.stack(by_grid[::-1], -1)
    return sampler.restored(by_x, sampler.sizes) if wanted[0] else None, by_grid
