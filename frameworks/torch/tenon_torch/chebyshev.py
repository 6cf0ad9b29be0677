"""Functions of one variable by Chebyshev series.

A `Series` is a function on an interval, known to mpmath (of which PyTorch's own sympy is made), which computes the coefficients when the
series is first used. So nothing is tabulated, and each type has as many terms as its digits need.
"""

from collections.abc import Callable

import numpy
import torch
from torch import Tensor

from .table import wide

# Digits in which mpmath computes: what cancels in a function of large arguments is behind them.
_DIGITS = 40
# Chebyshev nodes at which a function is computed. Its series has to end before: the longest here has 29 terms in f64.
_NODES = 72


class Series:
    """`function`, of a number of mpmath, on the interval from `low` to `high`."""

    def __init__(self, function: Callable, low: float, high: float):
        self._function, self._low, self._high = function, low, high
        self._all: list[float] = []

    def coefficients(self, dtype: torch.dtype) -> list[float]:
        """From the constant one on, down to what the type's digits no longer show."""
        if not self._all:
            self._all = _coefficients(self._function, self._low, self._high)
        least = torch.finfo(dtype).eps / 8 * max(map(abs, self._all))
        count = max(i for i, each in enumerate(self._all) if abs(each) > least) + 1
        assert count < _NODES // 2, "the series does not end"
        return self._all[:count]

    def __call__(self, x: Tensor) -> Tensor:
        """By Clenshaw's recurrence. Outside the interval results are any numbers, which the caller drops."""
        coefficients = self.coefficients(x.dtype)
        half = (self._high - self._low) / 2
        t = (x - (self._low + half)) * (1 / half)
        twice, one, two = t + t, torch.zeros_like(t), torch.zeros_like(t)
        for each in reversed(coefficients[1:]):
            one, two = twice * one - two + each, one
        return t * one - two + coefficients[0]


def _coefficients(function: Callable, low: float, high: float) -> list[float]:
    import mpmath

    with mpmath.workdps(_DIGITS):
        middle, half = mpmath.mpf(low + high) / 2, mpmath.mpf(high - low) / 2
        angles = [mpmath.pi * (2 * k + 1) / (2 * _NODES) for k in range(_NODES)]
        values = [function(middle + half * mpmath.cos(angle)) for angle in angles]
        cosines = [mpmath.cos(mpmath.pi * k / (2 * _NODES)) for k in range(4 * _NODES)]
        found = [sum(value * cosines[i * (2 * k + 1) % (4 * _NODES)] for k, value in enumerate(values)) * 2 / _NODES for i in range(_NODES)]
        return [float(found[0] / 2), *map(float, found[1:])]


def exact(function: Callable, *arguments):
    """What a function of mpmath gives, in as many digits as series are computed in."""
    import mpmath

    with mpmath.workdps(_DIGITS):
        return function(*arguments)


def minus(x: Tensor, number) -> Tensor:
    """x - number, one of mpmath, by two numbers of x's type: exact to the last digit where x is near to it."""
    import mpmath

    with mpmath.workdps(_DIGITS):
        high = float(numpy.float32(number)) if x.dtype == torch.float32 else float(number)
        return (x - high) - float(number - high)


def floating(x: Tensor) -> Tensor:
    """As a tensor of f32 or f64: integers are of PyTorch's default type, the short floats are widened."""
    if not x.dtype.is_floating_point:
        x = x.to(torch.get_default_dtype())
    return x.to(wide(x.dtype))


def result_dtype(x: Tensor) -> torch.dtype:
    return x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()


def elementwise(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The op that `function`, of f32 or f64, computes."""

    def op(x):
        if x.is_complex():
            return NotImplemented
        return function(floating(x)).to(result_dtype(x))

    return op

