"""Maximum pools whose windows begin at random places (Graham, Fractional Max-Pooling), as functions of PyTorch."""

import math

import torch

from .table import aten


def _starts(size: int, out: int, window: int, sample):
    """Where the windows of one dimension begin: `out` places of each of the samples."""
    last = size - window
    if out == 1:
        return torch.full((*sample.shape, 1), last, dtype=torch.int64, device=sample.device)
    step = last / (out - 1)
    place, sample = torch.arange(out, dtype=sample.dtype, device=sample.device), sample.unsqueeze(-1)
    begun = ((place + sample) * step).to(torch.int64) - (sample * step).to(torch.int64)
    return torch.where(place < out - 1, begun, last)


def _fractional_max_pool(x, window, out, samples):
    """The greatest elements of the windows, and where they are among the last dimensions. In two dimensions the first sample is that of the
    last."""
    rank = len(window)
    sizes = x.shape[-rank:]
    batch = x if x.dim() == rank + 2 else x.unsqueeze(0)
    samples = samples[:batch.shape[0]].flip(-1) if rank == 2 else samples[:batch.shape[0]]
    places = torch.zeros((), dtype=torch.int64, device=x.device)
    for i in range(rank):
        starts = _starts(sizes[i], out[i], window[i], samples[..., i])
        each = starts.unsqueeze(-1) + torch.arange(window[i], device=x.device)  # batch, channel, out, window
        # To batch, channel, out..., window...
        each = each.reshape(*each.shape[:2], *(out[i] if i == k else 1 for k in range(rank)), *(window[i] if i == k else 1 for k in range(rank)))
        places = places * sizes[i] + each
    flat = batch.flatten(2)
    places = places.reshape(*places.shape[:2], math.prod(out), math.prod(window))
    found = torch.gather(flat, 2, places.flatten(2)).reshape(places.shape)
    values, best = found.max(-1)
    places = torch.gather(places, 3, best.unsqueeze(-1)).squeeze(-1)
    shape = (*x.shape[:-rank], *out)
    return values.reshape(shape), places.reshape(shape)


def _fractional_max_pool_backward(gradient, x, window, out, places):
    rank = len(window)
    shape = x.shape[:-rank]
    zeros = torch.zeros_like(x).reshape(*shape, -1)
    return zeros.scatter_add(-1, places.reshape(*shape, -1), gradient.reshape(*shape, -1)).reshape(x.shape)


DECOMPOSITIONS = {
    aten.fractional_max_pool2d.default: _fractional_max_pool,
    aten.fractional_max_pool3d.default: _fractional_max_pool,
    aten.fractional_max_pool2d_backward.default: _fractional_max_pool_backward,
    aten.fractional_max_pool3d_backward.default: _fractional_max_pool_backward,
}
