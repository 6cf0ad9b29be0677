"""Dense linear algebra that StableHLO has ops for."""

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, lowers, overloads, prod


def triangle(b: Builder, x: Value, upper: bool) -> Value:
    rows, columns = (b.iota(x.shape, x.rank - 2 + i, torch.int32) for i in range(2))
    return b.select(b.compare(rows, columns, "LE" if upper else "GE"), x, b.like(x, 0))


def eye(b: Builder, shape, dtype: torch.dtype) -> Value:
    """Ones where the last two indices are equal, and zeros."""
    rows, columns = (b.iota(shape, len(shape) - 2 + i, torch.int32) for i in range(2))
    return b.convert(b.compare(rows, columns, "EQ"), dtype)


@lowers(aten.linalg_cholesky_ex.default)
def cholesky(b: Builder, x: Value, *, upper=False, check_errors=False):
    """`info` is 1 for a matrix that is not positive definite, of which all elements become NaN."""
    if check_errors:
        raise Unsupported("an error that depends on elements")
    if x.count == 0:
        return x, b.full(b.out[1].shape, 0, torch.int32)
    factor = triangle(b, b.op("cholesky", x, attributes=f"lower = {str(not upper).lower()}"), upper)
    real = b.real(factor) if x.dtype.is_complex else factor
    wrong = b.reduce(b.compare(real, real, "NE"), [x.rank - 2, x.rank - 1], "or", False)
    return factor, b.convert(wrong, torch.int32)


@lowers(aten.linalg_solve_triangular.default)
def solve_triangular(b: Builder, a: Value, right: Value, *, upper: bool, left=True, unitriangular=False) -> Value:
    rank = len(b.out.shape)
    lead = b.out.shape[:-2]
    a = b.broadcast(a, lead + a.shape[-2:])
    right = b.broadcast(right, lead + right.shape[-2:])
    if right.count == 0 or rank < 2:
        return b.full(b.out.shape, 0, b.out.dtype)
    return b.op("triangular_solve", a, right, shape=right.shape, attributes=(
        f"left_side = {str(left).lower()}, lower = {str(not upper).lower()}, unit_diagonal = {str(unitriangular).lower()}, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>"))


def _solve(b: Builder, a: Value, right: Value, lower: bool, how: str, unit: bool = False) -> Value:
    return b.op("triangular_solve", a, right, shape=right.shape, attributes=(
        f"left_side = true, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {how}>"))


@lowers(aten.triangular_solve.default)
def old_triangular_solve(b: Builder, right: Value, a: Value, upper=True, transpose=False, unitriangular=False):
    solution, copy = b.out
    a = b.broadcast(a, copy.shape)
    if prod(solution.shape) == 0:
        return b.full(solution.shape, 0, solution.dtype), a
    return _solve(b, a, b.broadcast(right, solution.shape), not upper, "TRANSPOSE" if transpose else "NO_TRANSPOSE", unitriangular), a


def _by_factor(b: Builder, right: Value, factor: Value, upper: bool) -> Value:
    """Solves A x = right by a factor of A: first its lower half, then its upper one."""
    first, second = ("ADJOINT", "NO_TRANSPOSE") if upper else ("NO_TRANSPOSE", "ADJOINT")
    return _solve(b, factor, _solve(b, factor, right, not upper, first), not upper, second)


@lowers(aten.cholesky_solve.default, *overloads(aten._cholesky_solve_helper, "default"))
def cholesky_solve(b: Builder, right: Value, factor: Value, upper=False) -> Value:
    lead = b.out.shape[:-2]
    if prod(b.out.shape) == 0:
        return b.full(b.out.shape, 0, b.out.dtype)
    return _by_factor(b, b.broadcast(right, lead + right.shape[-2:]), b.broadcast(factor, lead + factor.shape[-2:]), upper)


@lowers(*overloads(aten.cholesky_inverse, "default"))
def cholesky_inverse(b: Builder, factor: Value, upper=False) -> Value:
    if factor.count == 0:
        return factor
    return _by_factor(b, eye(b, factor.shape, factor.dtype), factor, upper)
