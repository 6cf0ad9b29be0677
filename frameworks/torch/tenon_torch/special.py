"""Bessel functions, Airy's, and those of the normal distribution, as functions of PyTorch: by Chebyshev series where they are smooth,
by what they approach elsewhere (DLMF, chapters 7, 9 and 10).
"""

import functools
import math

import torch

from .chebyshev import Series, elementwise, exact, minus
from .table import aten


def _mp():
    import mpmath

    return mpmath.mp


# --- Bessel functions of the first and second kind. Up to _NEAR they are series in x^2, beyond it waves:
# J = sqrt(2 / (pi x)) (P cos c - Q sin c), Y = sqrt(2 / (pi x)) (P sin c + Q cos c) with c = x - (order / 2 + 1 / 4) pi

_NEAR = 8.0


def _amplitude(order: int, which: int):
    """P (`which` 0), or Q x / _NEAR, of (_NEAR / x)^2."""

    def function(square):
        mp = _mp()
        x = _NEAR / mp.sqrt(square)
        c, size = x - (mp.mpf(order) / 2 + mp.mpf(1) / 4) * mp.pi, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        return size * (j * mp.cos(c) + y * mp.sin(c)) if which == 0 else size * (y * mp.cos(c) - j * mp.sin(c)) * x / _NEAR

    return function


_AMPLITUDES = {(order, which): Series(_amplitude(order, which), 0, 1) for order in (0, 1) for which in (0, 1)}


@functools.cache
def _zeros(order: int) -> tuple:
    """Those of J between 0 and _NEAR."""
    return tuple(exact(_mp().besseljzero, order, which) for which in (1, 2))


def _without_zeros(order: int):
    """J / x^order of x^2, divided by its zeros up to _NEAR."""

    def function(square):
        mp = _mp()
        x = mp.sqrt(square)
        result = mp.besselj(order, x) / x ** order
        for zero in _zeros(order):
            result /= square - zero ** 2
        return result

    return function


def _without_logarithm(order: int):
    """What of Y the logarithm and the pole leave, divided by x^order, of x^2."""

    def function(square):
        mp = _mp()
        x = mp.sqrt(square)
        rest = mp.bessely(order, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(order, x) - (1 / x if order else 0))
        return rest / x ** order

    return function


_NEAR_J = {order: Series(_without_zeros(order), 0, _NEAR ** 2) for order in (0, 1)}
_NEAR_Y = {order: Series(_without_logarithm(order), 0, _NEAR ** 2) for order in (0, 1)}


def _near_j(order: int, x):
    """For 0 <= x <= _NEAR."""
    result = _NEAR_J[order](x * x)
    for zero in _zeros(order):
        result = result * (minus(x, zero) * (x + float(zero)))
    return result * x if order else result


def _far(order: int, x, is_second: bool):
    """For x >= _NEAR. The wave's angle is not rounded: cos and sin of x - pi / 4 are made of those of x."""
    cos, sin = torch.cos(x), torch.sin(x)
    plus, difference = (sin + cos) * math.sqrt(0.5), (sin - cos) * math.sqrt(0.5)
    cos, sin = (plus, difference) if order == 0 else (difference, -plus)
    q = _AMPLITUDES[order, 1]((_NEAR / x).square()) * (_NEAR / x)
    p = _AMPLITUDES[order, 0]((_NEAR / x).square())
    wave = p * sin + q * cos if is_second else p * cos - q * sin
    return torch.where(x.isinf(), 0, wave * torch.rsqrt(x) * math.sqrt(2 / math.pi))


def _bessel_j(order: int, x):
    size = x.abs()
    result = torch.where(size <= _NEAR, _near_j(order, size), _far(order, size, False))
    return torch.where(torch.signbit(x), -result, result) if order else result


def _bessel_y(order: int, x):
    """Negative numbers have a logarithm that is none."""
    near = _NEAR_Y[order](x * x) * (x if order else 1) + 2 / math.pi * (torch.log(x) * _near_j(order, x) - (1 / x if order else 0))
    result = torch.where(x <= _NEAR, near, _far(order, x, True))
    return torch.where(x == 0, -math.inf, result)


# --- modified Bessel functions: of the first kind e^-x I, of the second what the logarithm leaves, and e^x K


_I0_NEAR = Series(lambda x: _mp().exp(-x) * _mp().besseli(0, x), 0, _NEAR)
_I0_FAR = Series(lambda t: _mp().sqrt(_NEAR / t) * _mp().exp(-_NEAR / t) * _mp().besseli(0, _NEAR / t), 0, 1)
_I_TINY = {order: Series(lambda s, order=order: _mp().besseli(order, _mp().sqrt(s)) / _mp().sqrt(s) ** order, 0, 4) for order in (0, 1)}
_K_NEAR = {
    0: Series(lambda s: _mp().besselk(0, _mp().sqrt(s)) + _mp().log(s / 4) / 2 * _mp().besseli(0, _mp().sqrt(s)), 0, 4),
    1: Series(lambda s: (_mp().besselk(1, _mp().sqrt(s)) - _mp().log(s / 4) / 2 * _mp().besseli(1, _mp().sqrt(s))) * _mp().sqrt(s), 0, 4)}
_K_FAR = {order: Series(lambda t, order=order: _mp().sqrt(2 / t) * _mp().exp(2 / t) * _mp().besselk(order, 2 / t), 0, 1) for order in (0, 1)}


def _i0e(x):
    size = x.abs()
    return torch.where(size <= _NEAR, _I0_NEAR(size), _I0_FAR(_NEAR / size) * torch.rsqrt(size))


def _by_exponential(scaled, size):
    """scaled * e^size: in two steps, since e^size alone is infinite too early."""
    half = torch.exp(size / 2)
    return half * scaled * half


def _modified_i0(x):
    return _by_exponential(_i0e(x), x.abs())


def _modified_i1(x):
    return _by_exponential(aten.special_i1e(x), x.abs())


def _scaled_k(order: int, x):
    near = _K_NEAR[order](x * x)
    product = (torch.log(x) - math.log(2)) * _I_TINY[order](x * x)
    near = near / x + product * x if order else near - product
    return near, torch.where(x.isinf(), 0, _K_FAR[order](2 / x) * torch.rsqrt(x))


def _modified_k(order: int, x, is_scaled: bool):
    """Negative numbers have a logarithm that is none."""
    near, far = _scaled_k(order, x)
    result = torch.where(x <= 2, near * torch.exp(x), far) if is_scaled else torch.where(x <= 2, near, far * torch.exp(-x))
    return torch.where(x == 0, math.inf, result)


# --- Airy's function: of both sides its waves, and its decay


_DECAYS, _WAVES = 2.0, -4.0  # From where on, and up to where.


def _of_zeta(t, side: float):
    """zeta and x for t = zeta(side) / zeta, where zeta = 2 / 3 x^1.5."""
    zeta = 2 * _mp().mpf(side) ** 1.5 / 3 / t
    return zeta, (3 * zeta / 2) ** (_mp().mpf(2) / 3)


def _airy_decay(t):
    zeta, x = _of_zeta(t, _DECAYS)
    return _mp().airyai(x) * _mp().exp(zeta) * x ** (_mp().mpf(1) / 4)


def _airy_wave(which: int):
    """Of t^2: the part along the sine (0), and that along the cosine, divided by t (1)."""

    def function(square):
        mp = _mp()
        zeta, x = _of_zeta(mp.sqrt(square), -_WAVES)
        angle, size = zeta + mp.pi / 4, x ** (mp.mpf(1) / 4)
        ai, bi = mp.airyai(-x), mp.airybi(-x)
        if which == 0:
            return size * (ai * mp.sin(angle) + bi * mp.cos(angle))
        return size * (ai * mp.cos(angle) - bi * mp.sin(angle)) / mp.sqrt(square)

    return function


_AIRY_LEFT, _AIRY_RIGHT = (Series(lambda x: _mp().airyai(x), *bounds) for bounds in ((_WAVES, 0), (0, _DECAYS)))
_AIRY_DECAY = Series(_airy_decay, 0, 1)
_AIRY_WAVES = [Series(_airy_wave(which), 0, 1) for which in (0, 1)]


def _airy_ai(x):
    """No number at the infinities, as PyTorch has it."""
    size = x.abs()
    root = torch.sqrt(size)
    zeta = size * root * (2 / 3)
    decay = _AIRY_DECAY(2 / 3 * _DECAYS ** 1.5 / zeta) * torch.exp(-zeta) * torch.rsqrt(root)
    cos, sin, t = torch.cos(zeta), torch.sin(zeta), 2 / 3 * (-_WAVES) ** 1.5 / zeta
    along_sine, along_cosine = (series(t * t) for series in _AIRY_WAVES)
    wave = (along_sine * (sin + cos) + along_cosine * t * (cos - sin)) * math.sqrt(0.5) * torch.rsqrt(root)
    result = torch.where(x > 0, torch.where(x > _DECAYS, decay, _AIRY_RIGHT(x)), torch.where(x < _WAVES, wave, _AIRY_LEFT(x)))
    return torch.where(x.isinf(), math.nan, result)


def _spherical_bessel_j0(x):
    quotient = torch.where(x == 0, 1, torch.sin(x) / x)
    return torch.where(x.isinf(), 0, quotient)


# --- the normal distribution


# erfcx(x) (1 + 2 x) of (x - _POLE) / (x + _POLE) is smooth from 0 to infinity.
_POLE = 3.75
_ERFCX = Series(lambda t: (lambda x: (1 + 2 * x) * _mp().exp(x * x) * _mp().erfc(x))(_POLE * (1 + t) / (1 - t)), -1, 1)


def _exp_of_square(x):
    """e^(x^2): what rounding takes from x^2 is a second factor."""
    grid = 2.0 ** (6 if x.dtype == torch.float32 else 20)
    near = torch.round(x * grid) / grid
    return torch.exp(near * near) * torch.exp((x - near) * (x + near))


def _erfcx(x):
    size = x.abs()
    t = torch.where(size.isinf(), 1, (size - _POLE) / (size + _POLE))
    result = _ERFCX(t) / (1 + 2 * size)
    bounded = torch.clamp(size, max=10.0 if x.dtype == torch.float32 else 27.0)
    return torch.where(x < 0, 2 * _exp_of_square(bounded) - result, result)


def _log_ndtr(x):
    t = x * math.sqrt(0.5)
    return torch.where(x < -1, torch.log(_erfcx(-t) / 2) - t * t, torch.log1p(-torch.erfc(t) / 2))


_TAILS = (math.exp(-2), 2.0, 8.0, 40.0)  # The probability from which on a tail is computed by z = sqrt(-2 log p), and bounds of z.


def _quantile_rest(low: float):
    """Of low / z: (z - log(z) / z - x) z, where x is the distance of the quantile of e^(-z^2 / 2) from 0."""

    def function(t):
        mp = _mp()
        z = low / t
        x = z - mp.log(z) / z
        log_p = -z * z / 2
        for _ in range(8):  # Newton's method on the logarithm of the tail.
            tail = mp.erfc(x / mp.sqrt(2)) / 2
            slope = -mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) / tail
            x -= (mp.log(tail) - log_p) / slope
        return (z - mp.log(z) / z - x) * z

    return function


_QUANTILES = [Series(_quantile_rest(low), low / high, 1) for low, high in zip(_TAILS[1:], _TAILS[2:])]


def _ndtri(p):
    lower = torch.where(p < 0.5, p, 1 - p)
    z = torch.sqrt(-2 * torch.log(lower))
    rest = torch.where(z <= _TAILS[2], _QUANTILES[0](_TAILS[1] / z), _QUANTILES[1](_TAILS[2] / z))
    tail = torch.where(lower == 0, math.inf, z - (torch.log(z) + rest) / z)
    tail = torch.where(p < 0.5, -tail, tail)
    return torch.where(lower > _TAILS[0], torch.erfinv(2 * p - 1) * math.sqrt(2), tail)


DECOMPOSITIONS = {op.default: elementwise(function) for op, function in (
    (aten.special_bessel_j0, functools.partial(_bessel_j, 0)), (aten.special_bessel_j1, functools.partial(_bessel_j, 1)),
    (aten.special_bessel_y0, functools.partial(_bessel_y, 0)), (aten.special_bessel_y1, functools.partial(_bessel_y, 1)),
    (aten.i0, _modified_i0), (aten.special_i0e, _i0e), (aten.special_i1, _modified_i1),
    (aten.special_modified_bessel_i0, _modified_i0), (aten.special_modified_bessel_i1, _modified_i1),
    (aten.special_modified_bessel_k0, functools.partial(_modified_k, 0, is_scaled=False)),
    (aten.special_modified_bessel_k1, functools.partial(_modified_k, 1, is_scaled=False)),
    (aten.special_scaled_modified_bessel_k0, functools.partial(_modified_k, 0, is_scaled=True)),
    (aten.special_scaled_modified_bessel_k1, functools.partial(_modified_k, 1, is_scaled=True)),
    (aten.special_airy_ai, _airy_ai), (aten.special_spherical_bessel_j0, _spherical_bessel_j0),
    (aten.special_erfcx, _erfcx), (aten.special_log_ndtr, _log_ndtr), (aten.special_ndtri, _ndtri))}
