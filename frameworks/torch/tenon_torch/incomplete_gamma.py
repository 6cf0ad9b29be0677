"""The regularized incomplete gamma functions P and Q = 1 - P of a and x, as functions of PyTorch.

    x <= 1.1                      a series of fixed length (DLMF 8.7.3)
    a >= 200, x near to a         the integral of the tail by Gauss's rule
    otherwise, x < a              P by a series (DLMF 8.11.4)
    otherwise                     Q by a continued fraction (DLMF 8.9.2)

Each computes what is not near to 1, but for the first, which computes both. The others are loops, which make no turn where they have no
element: the integral's over its points, the last two until every element is exact. The integral bounds their turns.
"""

import functools
import math

import torch

from .chebyshev import floating
from .loops import step, until
from .table import aten

_TINY_X = 1.1
_LARGE_A, _NEAR_A = 200.0, 0.3


def _by_type(dtype, of_f32: int, of_f64: int) -> int:
    return of_f64 if dtype == torch.float64 else of_f32


def _log1p_minus(u):
    """log(1 + u) - u for -1/2 <= u <= 1: with s = u / (2 + u) it is 2 (s^3 / 3 + s^5 / 5 + ...) - s u."""
    s = u / (2 + u)
    square, total = s * s, 0
    for k in reversed(range(_by_type(u.dtype, 9, 18))):
        total = total * square + 2 / (2 * k + 3)
    return total * square * s - s * u


def _stirling_rest(a):
    """log Gamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2), for a >= 10 (DLMF 5.11.1)."""
    total, square = 0, 1 / (a * a)
    for each in reversed((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)):
        total = total * square + each
    return total / a


def _power_by_gamma(a, x):
    """x^a e^-x / Gamma(a)."""
    ratio = (x - a) / a
    log = torch.where(ratio.abs() <= 0.5, _log1p_minus(ratio), torch.log(x / a) - ratio)
    large = torch.exp(a * log - _stirling_rest(a)) * torch.sqrt(a / (2 * math.pi))
    bounded, part = x.clamp(max=1000), torch.exp(-x.clamp(max=2000) / 2)
    small = torch.pow(bounded, a) * part * torch.exp(-torch.lgamma(a)) * part
    return torch.where(a >= 10, large, small)


@functools.cache
def _zetas(count: int) -> list[float]:
    import mpmath

    return [float((mpmath.zeta(k) - 1) / k * (-1) ** k) for k in range(2, count + 2)]


def _log_gamma_1p(a):
    """log Gamma(1 + a), exact for small a too (DLMF 5.7.3)."""
    total = 0
    for each in reversed(_zetas(_by_type(a.dtype, 11, 24))):
        total = total * a + each
    near = total * a * a - torch.log1p(a) + a * (1 - 0.57721566490153286)
    return torch.where(a < 0.5, near, torch.lgamma(1 + a))


def _by_powers(a, x):
    """P and Q for x <= _TINY_X."""
    total, term = torch.zeros_like(x), torch.ones_like(x)
    for n in range(1, _by_type(x.dtype, 13, 20)):
        term = term * (-x / n)
        total = total + term / (a + n)
    log = a * torch.log(x) - _log_gamma_1p(a)
    size = torch.exp(log)
    return size * (1 + a * total), -torch.expm1(log) - size * (a * total)


@functools.cache
def _gauss(count: int) -> list[tuple[float, float]]:
    """Places in [0, 1] and weights."""
    import numpy

    places, weights = numpy.polynomial.legendre.leggauss(count)
    return [(float(place) / 2 + 0.5, float(weight) / 2) for place, weight in zip(places, weights)]


def _gauss_point(_, state, constants):
    """A place more of the integral, in units of its length, of the integrand of Gamma(a, x) by that at x."""
    goes_on, k, total = state
    ratio, a, x, places, weights = constants
    place, weight = (torch.index_select(each, 0, k.reshape(1)).reshape(()) for each in (places, weights))
    u = ratio * place
    value = weight * torch.exp((a - 1) * _log1p_minus(u) + u * (a - x - 1))
    k = k + 1
    return [goes_on & (k < places.shape[0]), k, torch.where(goes_on, total + value, total)], []


def _sum(_, state, constants):
    """A term more of 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..."""
    goes_on, n, term, total = state
    a, x = constants
    n = n + 1
    term = torch.where(goes_on, term * (x / (a + n)), term)
    total = torch.where(goes_on, total + term, total)
    return [goes_on & (term > torch.finfo(x.dtype).eps / 2 * total), n, term, total], []


def _fraction(_, state, constants):
    """A term more of the continued fraction of Gamma(a, x) / (x^a e^-x), by Lentz's method."""
    goes_on, n, b, c, d, result = state
    a, = constants
    n = n + 1
    part, b = n * (a - n), b + 2
    d = 1 / (part * d + b)
    c = b + part / c
    factor = c * d
    result = torch.where(goes_on, result * factor, result)
    return [goes_on & ((factor - 1).abs() > torch.finfo(b.dtype).eps), n, b, c, d, result], []


_GAUSS_POINT, _SUM, _FRACTION = step(_gauss_point), step(_sum), step(_fraction)


def _tail(a, x, chosen):
    """The lesser of P and Q for large a and x near to it: the integral from x to where the integrand is of no account."""
    rate = ((x - a) / x).abs()
    exponent = _by_type(x.dtype, 24, 50)
    length = a * (torch.sqrt(rate * rate + 2 * exponent / a) - rate)
    length = torch.minimum(length, torch.where(x < a, x / 2, x))  # As far as _log1p_minus goes.
    ratio = torch.where(x < a, -length, length) / x
    places, weights = (torch.stack([torch.full((), each, dtype=x.dtype, device=x.device) for each in row])
                       for row in zip(*_gauss(_by_type(x.dtype, 16, 32))))
    first = torch.zeros((), dtype=torch.int64, device=x.device)
    _, _, total = until(_GAUSS_POINT, [chosen, first, torch.zeros_like(x)], [ratio, a, x, places, weights])
    return total * length / x


def _by_sum(a, x, chosen):
    n = torch.zeros((), dtype=x.dtype, device=x.device)
    _, _, _, total = until(_SUM, [chosen, n, torch.ones_like(x), torch.ones_like(x)], [a, x])
    return total / a


def _by_fraction(a, x, chosen):
    n = torch.zeros((), dtype=x.dtype, device=x.device)
    b = x + 1 - a
    return until(_FRACTION, [chosen, n, b, torch.full_like(x, 1 / torch.finfo(x.dtype).tiny), 1 / b, 1 / b], [a])[5]


def _both(a, x):
    """P and Q. At the limits as PyTorch has them."""
    inside = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    safe_a, safe_x = torch.where(inside, a, 1), torch.where(inside, x, 1)
    tiny = safe_x <= _TINY_X
    near = ~tiny & (safe_a >= _LARGE_A) & ((safe_x - safe_a).abs() < _NEAR_A * safe_a)
    below = safe_x < safe_a
    powers = _by_powers(safe_a, safe_x)
    size = _power_by_gamma(safe_a, safe_x)
    sums = _by_sum(safe_a, safe_x, ~tiny & ~near & below)
    fractions = _by_fraction(safe_a, safe_x, ~tiny & ~near & ~below)
    lesser = size * torch.where(near, _tail(safe_a, safe_x, near), torch.where(below, sums, fractions))
    p = torch.where(tiny, powers[0], torch.where(below, lesser, 1 - lesser))
    q = torch.where(tiny, powers[1], torch.where(below, 1 - lesser, lesser))
    at_least = ((x == 0) & (a > 0)) | (a.isinf() & x.isfinite())  # P is 0.
    at_most = ((a == 0) & (x > 0)) | (x.isinf() & a.isfinite())  # P is 1.
    none = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf()) | a.isnan() | x.isnan()
    for limit, of_p, of_q in ((at_least, 0.0, 1.0), (at_most, 1.0, 0.0), (none, math.nan, math.nan)):
        p, q = torch.where(limit, of_p, p), torch.where(limit, of_q, q)
    return p, q


def _incomplete_gamma(which: int):
    def op(a, x):
        dtype = torch.result_type(a, x)
        if not dtype.is_floating_point:
            return NotImplemented
        a, x = torch.broadcast_tensors(floating(a.to(dtype)), floating(x.to(dtype)))
        return _both(a, x)[which].to(dtype)

    return op


DECOMPOSITIONS = {op.default: _incomplete_gamma(which) for which, ops in enumerate(((aten.igamma, aten.special_gammainc), (aten.igammac, aten.special_gammaincc)))
                  for op in ops}
