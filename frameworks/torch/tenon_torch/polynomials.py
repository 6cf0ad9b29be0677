"""Orthogonal polynomials, as functions of PyTorch of x and of a degree for each element: by their recurrences (DLMF 18.9), one loop for all
elements; Chebyshev's of a higher degree by the cosines that they are (DLMF 18.5).
"""

import torch

from .chebyshev import floating
from .loops import step, until
from .table import aten

# Chebyshev polynomials of a higher degree are cosines between -1 and 1.
_GREATEST_DEGREE = {"t": 6, "u": 8, "v": 8, "w": 8}
# PyTorch gives no number for Hermite polynomials of a degree beyond, of which most are infinite.
_GREATEST_HERMITE = {torch.float32: 128, torch.float64: 512}


def _recurrence(next_one):
    """A step of a loop: `next_one` of x, k, the polynomials of degree k and k - 1 gives that of degree k + 1."""

    def advance(_, state, constants):
        goes_on, k, p, before = state
        x, n = constants
        new = next_one(x, k, p, before)
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


def _by_recurrence(next_one, x, n, first, chosen=True):
    """Degree n of every element, from 1 and `first`; of an element that is not `chosen` something else."""
    k = torch.ones((), dtype=x.dtype, device=x.device)
    _, _, p, _ = until(_STEPS[next_one], [(n > 1) & chosen, k, first, torch.ones_like(x)], [x, n])
    return torch.where(n < 0, 0, torch.where(n == 0, 1, p))


def _operands(x, n):
    """Both as tensors of one floating type and shape; degrees without their fractions."""
    like = x if isinstance(x, torch.Tensor) else n
    dtype = torch.result_type(x, n)
    x, n = (each if isinstance(each, torch.Tensor) else torch.full((), each, dtype=dtype, device=like.device) for each in (x, n))
    x, n = torch.broadcast_tensors(floating(x.to(dtype)), floating(n.to(dtype)))
    return x, torch.trunc(n)


def _chebyshev_of(kind: str, x, n):
    between = (x.abs() < 1) & (n > _GREATEST_DEGREE[kind])
    first = {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
    angle = torch.acos(x)
    half = angle / 2
    if kind == "t":
        wave = torch.cos(n * angle)
    elif kind == "u":
        wave = torch.sin((n + 1) * angle) / torch.sin(angle)
    elif kind == "v":
        wave = torch.cos((n + 0.5) * angle) / torch.cos(half)
    else:
        wave = torch.sin((n + 0.5) * angle) / torch.sin(half)
    return torch.where(between, wave, _by_recurrence(_chebyshev, x, n, first, ~between))


def _chebyshev_op(kind: str, is_shifted: bool):
    def op(x, n):
        x, n = _operands(x, n)
        return _chebyshev_of(kind, 2 * x - 1 if is_shifted else x, n)

    return op


def _hermite_op(next_one, factor: int):
    def op(x, n):
        x, n = _operands(x, n)
        found = _by_recurrence(next_one, x, n, factor * x, n <= _GREATEST_HERMITE[x.dtype])
        return torch.where(n.isfinite(), torch.where(n > _GREATEST_HERMITE[x.dtype], torch.nan, found), 0)

    return op


def _laguerre_op(x, n):
    x, n = _operands(x, n)
    return _by_recurrence(_laguerre, x, n, 1 - x)


def _legendre_op(x, n):
    x, n = _operands(x, n)
    return _by_recurrence(_legendre, x, n, x)


_OPS = {
    **{getattr(aten, f"special_{'shifted_' if is_shifted else ''}chebyshev_polynomial_{kind}"): _chebyshev_op(kind, is_shifted)
       for is_shifted in (False, True) for kind in _GREATEST_DEGREE},
    aten.special_hermite_polynomial_h: _hermite_op(_hermite_h, 2), aten.special_hermite_polynomial_he: _hermite_op(_hermite_he, 1),
    aten.special_laguerre_polynomial_l: _laguerre_op, aten.special_legendre_polynomial_p: _legendre_op}

DECOMPOSITIONS = {getattr(packet, name): op for packet, op in _OPS.items() for name in ("default", "x_scalar", "n_scalar")}
