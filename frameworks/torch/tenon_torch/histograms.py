"""What is counted into places of a fixed number: histograms of given bins, and the first places of what is not zero, as functions of
PyTorch.
"""

import math

import torch

from .table import aten


def _edges(x, bins: int, range):
    """The edges of `bins` equal bins: of the range, or else from the least to the greatest element, from 0 to 1 if there are none; half a unit
    around them if both are one."""
    if range is None and x.numel():
        low, high = x.min(), x.max()
    else:
        low, high = (torch.full((), each, dtype=x.dtype, device=x.device) for each in range or (0.0, 1.0))
    low, high = torch.where(low == high, low - 0.5, low), torch.where(low == high, high + 0.5, high)
    step, places = (high - low) / bins, torch.arange(bins + 1, dtype=x.dtype, device=x.device)
    # From both ends, as linspace: the last edge is exact.
    return torch.where(places < (bins + 1) // 2, low + step * places, high - step * (bins - places))


def _bin_of(x, edges):
    """The bin of each element, the last one closed; the number of bins for what lies in none."""
    bins = edges.shape[0] - 1
    found = torch.searchsorted(edges, x, right=True) - 1
    found = torch.where(x == edges[-1], bins - 1, found)
    return torch.where((x >= edges[0]) & (x <= edges[-1]), found, bins)


def _counted(x, edges: list, weight, density: bool):
    """A histogram of points, the rows of x, in as many dimensions as there are lists of edges."""
    sizes = [each.shape[0] - 1 for each in edges]
    total = math.prod(sizes)
    place, outside = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device), torch.zeros(x.shape[0], dtype=torch.bool, device=x.device)
    for i, each in enumerate(edges):
        found = _bin_of(x[:, i].contiguous(), each)
        outside = outside | (found == sizes[i])
        place = place * sizes[i] + found
    place = torch.where(outside, total, place)
    weight = torch.ones(x.shape[0], dtype=x.dtype, device=x.device) if weight is None else weight.reshape(-1).to(x.dtype)
    counts = aten.index_put(x.new_zeros(total + 1), [place], weight, True)[:total].reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for i, each in enumerate(edges):
            counts = counts / each.diff().reshape([-1 if i == k else 1 for k in range(len(edges))])
    return counts


def _histogram(x, bins=100, *, range=None, weight=None, density=False):
    flat = x.reshape(-1)
    edges = _edges(flat, bins, range)
    return _counted(flat.unsqueeze(-1), [edges], weight, density), edges


def _histogram_of_edges(x, bins, *, weight=None, density=False):
    return _counted(x.reshape(-1, 1), [bins], weight, density), bins.clone()


def _edges_of_points(x, bins, *, range=None, weight=None, density=False):
    points = x.reshape(-1, x.shape[-1])
    return [_edges(points[:, i], count, range and range[2 * i:2 * i + 2]) for i, count in enumerate(bins)]


def _histogram_of_points(x, bins, *, range=None, weight=None, density=False):
    return _counted(x.reshape(-1, x.shape[-1]), _edges_of_points(x, bins, range=range), weight, density)


def _histogram_of_points_by_edges(x, bins, *, weight=None, density=False):
    return _counted(x.reshape(-1, x.shape[-1]), list(bins), weight, density)


def _nonzero_static(x, *, size, fill_value=-1):
    """The places of the first `size` elements that are not zero, in a row each."""
    shape = x.shape or (1,)
    flags = (x != 0).reshape(-1)
    rank = flags.cumsum(0) - 1
    # What has no row goes behind the last one.
    row = torch.where(flags & (rank < size), rank, size)
    flat = torch.arange(flags.shape[0], device=x.device)
    columns = []
    for i in range(x.dim()):
        columns.append(flat // math.prod(shape[i + 1:]) % shape[i])
    places = torch.stack(columns, -1) if columns else flat.new_zeros(flags.shape[0], 0)
    found = torch.full((size + 1, x.dim()), fill_value, dtype=torch.int64, device=x.device)
    return aten.index_put(found, [row], places)[:size]


DECOMPOSITIONS = {
    aten.histogram.bin_ct: _histogram,
    aten.histogram.bins_tensor: _histogram_of_edges,
    aten._histogramdd_bin_edges.default: _edges_of_points,
    aten._histogramdd_from_bin_cts.default: _histogram_of_points,
    aten._histogramdd_from_bin_tensors.default: _histogram_of_points_by_edges,
    aten.nonzero_static.default: _nonzero_static,
}
