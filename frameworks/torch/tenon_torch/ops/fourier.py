"""Fourier transforms, a dimension at a time."""

import math

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, dimension, lowers
from ..types import COMPLEX_OF, REAL_OF


def _along(b: Builder, x: Value, dim: int, kind: str, length: int, shape_last: int, dtype: torch.dtype) -> Value:
    """One transform of the dimension `dim`, moved to the end for it."""
    order = [i for i in range(x.rank) if i != dim] + [dim]
    moved = b.transpose(x, order)
    done = b.op("fft", moved, shape=moved.shape[:-1] + (shape_last,), dtype=dtype,
                attributes=f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>")
    return b.transpose(done, [order.index(i) for i in range(x.rank)])


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    return x if factor == 1 else b.multiply(x, b.like(x, factor))


def _factor(normalization: int, count: int) -> float:
    """Of a sum without a factor: 0 none, 1 by the root of the count, 2 by the count."""
    return {0: 1.0, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization]


def _check(x: Value) -> None:
    if x.count == 0 or x.dtype.itemsize < 4:
        raise Unsupported(f"a transform of {x.dtype}{list(x.shape)}")


def _complex(b: Builder, x: Value, dims, normalization: int, forward: bool) -> Value:
    count = math.prod(x.shape[d] for d in dims)
    for d in dims:
        x = _along(b, x, d, "FFT" if forward else "IFFT", x.shape[d], x.shape[d], x.dtype)
    # IFFT divides by the count already.
    return _scaled(b, x, _factor(normalization, count) * (1 if forward else count))


@lowers(aten._fft_c2c.default)
def fft_c2c(b: Builder, x: Value, dims, normalization: int, forward: bool) -> Value:
    _check(x)
    return _complex(b, x, [dimension(d, x.rank) for d in dims], normalization, forward)


@lowers(aten._fft_r2c.default)
def fft_r2c(b: Builder, x: Value, dims, normalization: int, onesided: bool) -> Value:
    _check(x)
    dims = [dimension(d, x.rank) for d in dims]
    if not onesided:
        return _complex(b, b.convert(x, COMPLEX_OF[x.dtype]), dims, normalization, True)
    last, length = dims[-1], x.shape[dims[-1]]
    half = _along(b, x, last, "RFFT", length, length // 2 + 1, COMPLEX_OF[x.dtype])
    count = math.prod(x.shape[d] for d in dims)
    return _scaled(b, _complex(b, half, dims[:-1], 0, True), _factor(normalization, count))


@lowers(aten._fft_c2r.default)
def fft_c2r(b: Builder, x: Value, dims, normalization: int, last_size: int) -> Value:
    _check(x)
    dims = [dimension(d, x.rank) for d in dims]
    last = dims[-1]
    count = last_size * math.prod(x.shape[d] for d in dims[:-1])
    x = _complex(b, x, dims[:-1], 0, False)
    x = b.narrow(x, last, 0, min(x.shape[last], last_size // 2 + 1))
    if x.shape[last] < last_size // 2 + 1:
        high = [0] * x.rank
        high[last] = last_size // 2 + 1 - x.shape[last]
        x = b.pad(x, b.constant(0, x.dtype), [0] * x.rank, high)
    real = _along(b, x, last, "IRFFT", last_size, last_size, REAL_OF[x.dtype])
    return _scaled(b, real, _factor(normalization, count) * last_size)
