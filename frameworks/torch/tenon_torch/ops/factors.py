"""Factors of matrices, eigenvalues and singular values, by the custom calls that Tenon expands (docs/linalg.md), with the signs and the
order of pivots of LAPACK's getrf and geqrf; exponentials (Golub and Van Loan, Matrix Computations, section 9.3)."""

import math

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, lowers, prod
from ..types import REAL_OF
from .linalg import eye, triangle

def _refuse_type(x: Value) -> None:
    """LAPACK has no other types."""
    if x.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise Unsupported(f"matrices of {x.dtype}")


def _batched(b: Builder, x: Value) -> Value:
    """With one dimension of matrices."""
    return b.reshape(x, (prod(x.shape[:-2]), *x.shape[-2:]))


def _compared(b: Builder, shape, dim: int, direction: str, place: Value) -> Value:
    """Whether an index compares so to a place: a scalar, or one for each matrix."""
    place = b.broadcast_in_dim(place, shape, range(place.rank))
    return b.compare(b.iota(shape, dim, torch.int32), place, direction)


def _conjugate(b: Builder, x: Value) -> Value:
    return b.complex(b.real(x), b.op("negate", b.imag(x))) if x.dtype.is_complex else x


def _adjoint(b: Builder, x: Value) -> Value:
    return _conjugate(b, b.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]))


# --- LU


def _exchanged(b: Builder, x: Value, row: Value, other: Value) -> Value:
    """x [matrices, rows, …] with two rows exchanged: a scalar, and one for each matrix."""
    own = b.dynamic_slice(x, [row if i == 1 else b.constant(0, torch.int32) for i in range(x.rank)], (x.shape[0], 1, *x.shape[2:]))
    is_other = _compared(b, x.shape, 1, "EQ", other)
    name, zero = ("add", 0) if x.dtype != torch.bool else ("or", False)
    others = b.reduce(b.select(is_other, x, b.like(x, 0)), [1], name, zero)
    kept = [i for i in range(x.rank) if i != 1]
    x = b.select(is_other, b.broadcast_in_dim(b.reshape(own, others.shape), x.shape, kept), x)
    return b.select(_compared(b, x.shape, 1, "EQ", row), b.broadcast_in_dim(others, x.shape, kept), x)


def _rows(b: Builder, x: Value, order: Value) -> Value:
    """The rows of each matrix in an order [matrices, rows]."""
    count, rows, columns = x.shape
    result = b.value((count, order.shape[1], columns), x.dtype)
    order = b.reshape(order, (*order.shape, 1))
    b.lines.append(
        f'{result.name} = "stablehlo.gather"({x.name}, {order.name}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [2], '
        f"collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
        f"slice_sizes = array<i64: 1, 1, {columns}>}}> : ({x.type}, {order.type}) -> {result.type}")
    return result


@lowers(aten.linalg_lu_factor_ex.default)
def lu_factor(b: Builder, a: Value, *, pivot=True, check_errors=False):
    """`info` is the first column, from 1 on, whose diagonal element of U is 0, or 0."""
    _refuse_type(a)
    if check_errors:
        raise Unsupported("an error that depends on elements")
    factors, pivots, info = b.out
    if a.count == 0:
        return a, b.full(pivots.shape, 0, torch.int32), b.full(info.shape, 0, torch.int32)
    a = _batched(b, a)
    count, least = a.shape[0], pivots.shape[-1]
    rows = b.iota((count, least), 1, torch.int32)
    if pivot:
        lu, exchanged, _ = b.custom_call("LuDecomposition", [a], [(a.shape, a.dtype), (rows.shape, torch.int32), (a.shape[:2], torch.int32)])
    else:
        [lu], exchanged = b.custom_call("tenon.lu_without_exchanges", [a], [(a.shape, a.dtype)]), rows
    part = b.slice(lu, [0, 0, 0], [count, least, least])
    on_diagonal = b.compare(b.iota(part.shape, 1, torch.int32), b.iota(part.shape, 2, torch.int32), "EQ")
    is_zero = b.reduce(b.op("and", on_diagonal, b.compare(part, b.like(part, 0), "EQ")), [2], "or", False)
    first = b.reduce(b.select(is_zero, rows, b.full(rows.shape, least, torch.int32)), [1], "minimum", least)
    found = b.select(b.compare(first, b.full(first.shape, least, torch.int32), "EQ"), b.full(first.shape, 0, torch.int32), b.add(first, b.full(first.shape, 1, torch.int32)))
    return b.reshape(lu, factors.shape), b.reshape(b.add(exchanged, b.full(exchanged.shape, 1, torch.int32)), pivots.shape), b.reshape(found, info.shape)


def _order_of(b: Builder, pivots: Value, rows: int) -> Value:
    """The rows [matrices, rows] in the order in which exchanges [matrices, least], from 1 on, put them."""
    count, least = pivots.shape
    if least == 0:
        return b.iota((count, rows), 1, torch.int32)
    zero = b.constant(0, torch.int32)

    def exchange(i: Value, now: list[Value]) -> list[Value]:
        other = b.subtract(b.dynamic_slice(pivots, [zero, i], (count, 1)), b.full((count, 1), 1, torch.int32))
        return [_exchanged(b, now[0], i, b.reshape(other, (count,)))]

    return b.repeat(least, [b.iota((count, rows), 1, torch.int32)], exchange)[0]


@lowers(aten.lu_unpack.default)
def lu_unpack(b: Builder, lu: Value, pivots: Value, unpack_data=True, unpack_pivots=True):
    p, lower, upper = (tuple(each.shape) for each in b.out)
    results = [b.full(shape, 0, each.dtype) for shape, each in zip((p, lower, upper), b.out)]
    if unpack_pivots and prod(p) > 0:
        order = _order_of(b, b.reshape(pivots, (prod(pivots.shape[:-1]), pivots.shape[-1])), p[-1])
        shape = (order.shape[0], p[-1], p[-1])
        is_one = b.compare(b.iota(shape, 1, torch.int32), b.broadcast_in_dim(order, shape, [0, 2]), "EQ")
        results[0] = b.reshape(b.convert(is_one, b.out[0].dtype), p)
    if unpack_data and lu.count > 0:
        least = lower[-1]
        part = b.narrow(lu, lu.rank - 1, 0, least)
        rows, columns = (b.iota(part.shape, lu.rank - 2 + i, torch.int32) for i in range(2))
        results[1] = b.select(b.compare(rows, columns, "GT"), part, eye(b, part.shape, lu.dtype))
        results[2] = triangle(b, b.narrow(lu, lu.rank - 2, 0, least), True)
    return tuple(results)


@lowers(aten.linalg_lu_solve.default)
def lu_solve(b: Builder, lu: Value, pivots: Value, right: Value, *, left=True, adjoint=False) -> Value:
    """X of A X = B, of X A = B, or with the adjoint of A."""
    _refuse_type(lu)
    lead, shape = tuple(b.out.shape[:-2]), tuple(b.out.shape)
    if prod(shape) == 0:
        return b.full(shape, 0, b.out.dtype)
    size = lu.shape[-1]
    lu, right = (_batched(b, b.broadcast(each, lead + each.shape[-2:])) for each in (lu, right))
    pivots = b.broadcast(pivots, lead + pivots.shape[-1:])
    order = _order_of(b, b.reshape(pivots, (prod(lead), size)), size)
    if not left:  # X A = B is A^H X^H = B^H.
        right = _conjugate(b, b.transpose(right, [0, 2, 1]))
        adjoint = not adjoint

    def solve(x: Value, lower: bool) -> Value:
        how = "ADJOINT" if adjoint else "NO_TRANSPOSE"
        return b.op("triangular_solve", lu, x, shape=x.shape, attributes=(
            f"left_side = true, lower = {str(lower).lower()}, unit_diagonal = {str(lower).lower()}, transpose_a = #stablehlo<transpose {how}>"))

    if adjoint:
        solved = solve(solve(right, False), True)
        shape_of_places = (order.shape[0], size, size)
        # The place of each row among those that `order` names.
        hits = b.compare(b.broadcast_in_dim(order, shape_of_places, [0, 1]), b.iota(shape_of_places, 2, torch.int32), "EQ")
        places = b.select(hits, b.iota(shape_of_places, 1, torch.int32), b.full(shape_of_places, 0, torch.int32))
        result = _rows(b, solved, b.reduce(places, [1], "add", 0))
    else:
        result = solve(solve(_rows(b, right, order), True), False)
    if not left:
        result = _conjugate(b, b.transpose(result, [0, 2, 1]))
    return b.reshape(result, shape)


# --- QR


@lowers(aten.geqrf.default)
def geqrf(b: Builder, a: Value):
    """R, below it the reflections' vectors; and their factors."""
    _refuse_type(a)
    return tuple(b.custom_call("Qr", [a], [(each.shape, a.dtype) for each in b.out]))


@lowers(aten.linalg_householder_product.default)
def householder_product(b: Builder, a: Value, taus: Value) -> Value:
    """The first columns of Q."""
    return b.custom_call("ProductOfElementaryHouseholderReflectors", [a, taus], [(a.shape, a.dtype)])[0]


@lowers(aten.ormqr.default)
def ormqr(b: Builder, a: Value, taus: Value, x: Value, left=True, transpose=False) -> Value:
    def product(x: Value, adjoint: bool) -> Value:
        return b.custom_call("tenon.apply_reflections", [a, taus, x], [(x.shape, x.dtype)], "adjoint" if adjoint else "")[0]

    if left:
        return product(x, transpose)
    return _adjoint(b, product(_adjoint(b, x), not transpose))  # (Q^H x^H)^H


# --- eigenvalues and singular values


@lowers(aten._linalg_eigh.default)
def eigh(b: Builder, a: Value, UPLO="L", compute_v=True):  # noqa: N803
    _refuse_type(a)
    values, vectors = b.out
    lower = int(UPLO.upper() == "L")
    found, numbers = b.custom_call("Eigh", [a], [(a.shape, a.dtype), (values.shape, values.dtype)], f"{lower},1,100,1e-6")
    return numbers, found if compute_v else b.full(vectors.shape, 0, vectors.dtype)


@lowers(aten._linalg_svd.default)
def svd(b: Builder, a: Value, full_matrices=False, compute_uv=True, *, driver=None):
    """Whatever algorithm is asked for."""
    _refuse_type(a)
    u, s, vh = b.out
    rows, columns = a.shape[-2:]
    lead, least = a.shape[:-2], min(rows, columns)
    shapes = [(*lead, rows, rows if full_matrices else least), (*lead, columns if full_matrices else least, columns)]
    left, numbers, right = b.custom_call("tenon.svd", [a], [(shapes[0], a.dtype), (s.shape, s.dtype), (shapes[1], a.dtype)])
    if compute_uv:
        return left, numbers, right
    return b.full(u.shape, 0, u.dtype), numbers, b.full(vh.shape, 0, vh.dtype)


# --- exponentials of matrices

_DEGREE = 20  # Of Taylor's polynomial: 4 products for powers, 3 to join them.
_LONGEST = {torch.float32: 2.5, torch.float64: 1.0}  # The norm up to which it is exact to the type's digits.
_MOST_SQUARES = 1100  # Those that infinity would ask for.


@lowers(aten.linalg_matrix_exp.default)
def matrix_exp(b: Builder, a: Value) -> Value:
    """Taylor's polynomial of a / 2^s by four groups of powers (Paterson and Stockmeyer), squared s times."""
    _refuse_type(a)
    if a.count == 0:
        return a
    shape = a.shape
    a = _batched(b, a)
    kind = REAL_OF.get(a.dtype, a.dtype)
    size = b.op("abs", a, dtype=kind)
    norm = b.reduce(b.reduce(size, [1], "add", 0), [1], "maximum", 0)
    squares = b.op("ceil", b.divide(b.op("log", b.divide(norm, b.like(norm, _LONGEST[kind]))), b.like(norm, math.log(2))))
    squares = b.select(b.compare(norm, b.like(norm, _LONGEST[kind]), "GT"), b.op("minimum", squares, b.like(squares, _MOST_SQUARES)), b.like(squares, 0))
    by = b.broadcast_in_dim(b.op("power", b.like(squares, 2), b.op("negate", squares)), a.shape, [0])
    scaled = b.multiply(a, b.convert(by, a.dtype))
    unit = eye(b, a.shape, a.dtype)

    def times(x: Value, y: Value) -> Value:
        return b.dot(x, y, ([2], [1]), ([0], [0]))

    width = 5
    powers = [unit, scaled]
    for _ in range(width - 1):
        powers.append(times(powers[-1], scaled))
    result = b.multiply(unit, b.like(unit, 1 / math.factorial(_DEGREE)))
    for group in reversed(range(_DEGREE // width)):
        result = times(powers[width], result)
        for i in range(width):
            result = b.add(result, b.multiply(powers[i], b.like(unit, 1 / math.factorial(group * width + i))))
    most = b.reduce(squares, [0], "maximum", 0)

    def square(now: list[Value]) -> list[Value]:
        is_due = b.broadcast_in_dim(b.compare(b.broadcast(now[0], squares.shape), squares, "LT"), a.shape, [0])
        return [b.add(now[0], b.constant(1, kind)), b.select(is_due, times(now[1], now[1]), now[1])]

    return b.reshape(b.loop([b.constant(0, kind), result], lambda now: b.compare(now[0], most, "LT"), square)[1], shape)
