"""Orthogonal polynomials, as functions of PyTorch of x and of a degree for each element: by their recurrences (DLMF 18.9), one loop for all
elements; Chebyshev's of a higher degree by the cosines that they are (DLMF 18.5).
"""

import torch

from .chebyshev import floating, result_dtype
from .loops import step, until
from .table import aten

# Chebyshev polynomials of a higher degree are cosines between -1 and 1, from the degrees on that PyTorch takes them.
_GREATEST_DEGREE = {"t": 6, "u": 8, "v": 8, "w": 8}
# PyTorch gives no number for Hermite polynomials of a degree beyond, of which most are infinite.
_GREATEST_HERMITE = {torch.float32: 128, torch.float64: 512}


def _recurrence(next_one):
    """A step of a loop: `next_one` of x, k, the polynomials of degree k and k - 1 gives that of degree k + 1."""

    def advance(_, state, constants):
        goes_on, k, p, before = state
        x, n = constants
        new = next_one(x, k.to(x.dtype), p, before)
        p, before = torch.where(goes_on, new, p), torch.where(goes_on, p, before)
        k = k + 1
        return [goes_on & (k < n) & ~p.isnan(), k, p, before], []

    advance.__name__ = next_one.__name__
    return step(advance)


def _chebyshev(x, k, p, before):
    return 2 * x * p - before


def _hermite_h(x, k, p, before):
    return 2 * x * p - 2 * k * before


def _hermite_he(x, k, p, before):
    return x * p - k * before


def _laguerre(x, k, p, before):
    return ((2 * k + 1 - x) * p - k * before) / (k + 1)


def _legendre(x, k, p, before):
    return ((2 * k + 1) * x * p - k * before) / (k + 1)


_STEPS = {each: _recurrence(each) for each in (_chebyshev, _hermite_h, _hermite_he, _laguerre, _legendre)}


def _by_recurrence(next_one, x, n, first, known):
    """Degree n of every element, from 1 and `first`; what is `known` otherwise makes no turns."""
    k = torch.ones((), dtype=torch.int64, device=x.device)
    _, _, p, _ = until(_STEPS[next_one], [((n > 1) & ~known).expand(x.shape), k, first, torch.ones_like(x)], [x, n])
    return torch.where(n < 0, 0, torch.where(n == 0, 1, p))


def _polynomial(of):
    """The op of `of`, which gets x in f32 or f64, of the result's shape, and degrees in i64. A degree that is not finite is -1, of which the
    polynomial is 0."""

    def op(x, n):
        like = x if isinstance(x, torch.Tensor) else n
        dtype = torch.result_type(x, n)
        if dtype.is_complex:
            return NotImplemented
        x, n = (each.to(dtype) if isinstance(each, torch.Tensor) else torch.full((), each, dtype=dtype, device=like.device) for each in (x, n))
        result = result_dtype(x)
        x, n = floating(x), floating(n)
        x = x.expand(torch.broadcast_shapes(x.shape, n.shape))
        return of(x, torch.where(n.isfinite(), n, -1).clamp(-1, 2.0 ** 62).to(torch.int64)).to(result)

    return op


def _sign(n):
    """(-1)^n."""
    return 1 - 2 * (n % 2)


# At 1 and at -1.
_CHEBYSHEV_ENDS = {"t": (torch.ones_like, _sign), "u": (lambda n: n + 1, lambda n: _sign(n) * (n + 1)),
                   "v": (torch.ones_like, lambda n: _sign(n) * (2 * n + 1)), "w": (lambda n: 2 * n + 1, _sign)}


def _at_ends(x, n, ends, otherwise):
    at_one, at_minus_one = (end(n).to(x.dtype) for end in ends)
    return torch.where((x.abs() == 1) & (n >= 0), torch.where(x > 0, at_one, at_minus_one), otherwise)


def _chebyshev_of(kind: str, x, n):
    between = (x.abs() < 1) & (n > _GREATEST_DEGREE[kind])
    first = {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
    degree, angle = n.to(x.dtype), torch.acos(x)
    half = angle / 2
    if kind == "t":
        wave = torch.cos(degree * angle)
    elif kind == "u":
        wave = torch.sin((degree + 1) * angle) / torch.sin(angle)
    elif kind == "v":
        wave = torch.cos((degree + 0.5) * angle) / torch.cos(half)
    else:
        wave = torch.sin((degree + 0.5) * angle) / torch.sin(half)
    found = torch.where(between, wave, _by_recurrence(_chebyshev, x, n, first, between | (x.abs() == 1)))
    return _at_ends(x, n, _CHEBYSHEV_ENDS[kind], found)


def _hermite_of(next_one, factor: int):
    def of(x, n):
        over = n > _GREATEST_HERMITE[x.dtype]
        return torch.where(over, torch.nan, _by_recurrence(next_one, x, n, factor * x, over))

    return of


def _laguerre_of(x, n):
    return torch.where((x == 0) & (n >= 0), 1, _by_recurrence(_laguerre, x, n, 1 - x, x == 0))


def _legendre_of(x, n):
    return _at_ends(x, n, (torch.ones_like, _sign), _by_recurrence(_legendre, x, n, x, x.abs() == 1))


def _chebyshev_op(kind: str, is_shifted: bool):
    return _polynomial(lambda x, n: _chebyshev_of(kind, 2 * x - 1 if is_shifted else x, n))


_OPS = {
    **{getattr(aten, f"special_{'shifted_' if is_shifted else ''}chebyshev_polynomial_{kind}"): _chebyshev_op(kind, is_shifted)
       for is_shifted in (False, True) for kind in _GREATEST_DEGREE},
    aten.special_hermite_polynomial_h: _polynomial(_hermite_of(_hermite_h, 2)), aten.special_hermite_polynomial_he: _polynomial(_hermite_of(_hermite_he, 1)),
    aten.special_laguerre_polynomial_l: _polynomial(_laguerre_of),
    aten.special_legendre_polynomial_p: _polynomial(_legendre_of)}

DECOMPOSITIONS = {getattr(packet, name): op for packet, op in _OPS.items() for name in ("default", "x_scalar", "n_scalar")}
