"""Factors of matrices that StableHLO has no ops for: LU with row exchanges, and QR by reflections (Golub and Van Loan, Matrix
Computations, sections 3.4 and 5.2), with the signs and the order of pivots of LAPACK's getrf and geqrf; exponentials (9.3).

Factors are loops over columns. LU takes panels of columns, so that most of its work is products of matrices.
"""

import math

import torch

from ..builder import Builder, Value
from ..table import Unsupported, aten, lowers, prod
from ..types import REAL_OF
from .linalg import eye, triangle

_PANEL = 16  # Columns that are eliminated one by one before the rest of the matrix takes part.


def _refuse_type(x: Value) -> None:
    """LAPACK has no other types."""
    if x.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise Unsupported(f"matrices of {x.dtype}")


def _batched(b: Builder, x: Value) -> Value:
    """With one dimension of matrices."""
    return b.reshape(x, (prod(x.shape[:-2]), *x.shape[-2:]))


def _at(b: Builder, x: Value, row: Value | None, column: Value | None, rows: int, columns: int) -> Value:
    """A part of each matrix that begins at a row and a column, of the first where none is said."""
    zero = b.constant(0, torch.int32)
    return b.dynamic_slice(x, [zero, row or zero, column or zero], (x.shape[0], rows, columns))


def _put(b: Builder, x: Value, part: Value, row: Value | None, column: Value | None) -> Value:
    zero = b.constant(0, torch.int32)
    return b.dynamic_update_slice(x, part, [zero, row or zero, column or zero])


def _compared(b: Builder, shape, dim: int, direction: str, place: Value) -> Value:
    """Whether an index compares so to a place: a scalar, or one for each matrix."""
    place = b.broadcast_in_dim(place, shape, range(place.rank))
    return b.compare(b.iota(shape, dim, torch.int32), place, direction)


def _magnitude(b: Builder, x: Value) -> Value:
    """|re| + |im|, by which LAPACK chooses."""
    if not x.dtype.is_complex:
        return b.op("abs", x)
    return b.add(b.op("abs", b.real(x)), b.op("abs", b.imag(x)))


def _conjugate(b: Builder, x: Value) -> Value:
    return b.complex(b.real(x), b.op("negate", b.imag(x))) if x.dtype.is_complex else x


# --- LU


def _best_row(b: Builder, column: Value, first: Value) -> Value:
    """The row of each matrix, from `first` on, whose element [matrices, rows] is largest: the first of these; `first` where one is NaN."""
    size = b.select(_compared(b, column.shape, 1, "GE", first), _magnitude(b, column), b.full(column.shape, -1, REAL_OF.get(column.dtype, column.dtype)))
    best = b.broadcast_in_dim(b.reduce(size, [1], "maximum", -1), column.shape, [0])
    count = column.shape[1]
    place = b.reduce(b.select(b.compare(size, best, "EQ"), b.iota(column.shape, 1, torch.int32), b.full(column.shape, count, torch.int32)), [1], "minimum", count)
    return b.select(b.compare(place, b.full(place.shape, count, torch.int32), "EQ"), b.broadcast(first, place.shape), place)


def _exchanged(b: Builder, x: Value, row: Value, other: Value) -> Value:
    """x [matrices, rows, …] with two rows exchanged: a scalar, and one for each matrix."""
    own = b.dynamic_slice(x, [row if i == 1 else b.constant(0, torch.int32) for i in range(x.rank)], (x.shape[0], 1, *x.shape[2:]))
    is_other = _compared(b, x.shape, 1, "EQ", other)
    name, zero = ("add", 0) if x.dtype != torch.bool else ("or", False)
    others = b.reduce(b.select(is_other, x, b.like(x, 0)), [1], name, zero)
    kept = [i for i in range(x.rank) if i != 1]
    x = b.select(is_other, b.broadcast_in_dim(b.reshape(own, others.shape), x.shape, kept), x)
    return b.select(_compared(b, x.shape, 1, "EQ", row), b.broadcast_in_dim(others, x.shape, kept), x)


def _eliminate(b: Builder, panel: Value, start: Value, pivots: Value, order: Value, exchanges: bool) -> list[Value]:
    """The columns of a panel [matrices, rows, width] one by one, the first of which has its diagonal element in row `start`. Returns the
    panel, and `pivots` and `order` [matrices, rows]: the row that each row was exchanged with, and those that are in its place."""
    count, rows, width = panel.shape
    shape = panel.shape

    def column_of(j: Value, now: list[Value]) -> list[Value]:
        panel, pivots, order = now
        diagonal = b.add(start, j)
        if exchanges:
            best = _best_row(b, b.reshape(_at(b, panel, None, j, rows, 1), (count, rows)), diagonal)
            panel, order = _exchanged(b, panel, diagonal, best), _exchanged(b, order, diagonal, best)
            pivots = b.dynamic_update_slice(pivots, b.reshape(best, (count, 1)), [b.constant(0, torch.int32), diagonal])
        row = b.broadcast_in_dim(_at(b, panel, diagonal, None, 1, width), shape, range(3))
        pivot = b.broadcast_in_dim(_at(b, panel, diagonal, j, 1, 1), (count, rows, 1), range(3))
        column = _at(b, panel, None, j, rows, 1)
        # LAPACK leaves a column without a pivot as it is.
        below = b.op("and", _compared(b, column.shape, 1, "GT", diagonal), b.compare(pivot, b.like(pivot, 0), "NE"))
        column = b.select(below, b.divide(column, pivot), column)
        changed = b.op("and", _compared(b, shape, 1, "GT", diagonal), _compared(b, shape, 2, "GT", j))
        panel = b.select(changed, b.subtract(panel, b.multiply(b.broadcast_in_dim(column, shape, range(3)), row)), panel)
        return [_put(b, panel, column, None, j), pivots, order]

    return b.repeat(width, [panel, pivots, order], column_of)


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


def _panel(b: Builder, a: Value, start: Value, width: int, pivots: Value, exchanges: bool) -> list[Value]:
    """`width` columns from `start` on, and what they change in the rest of the matrix."""
    count, rows, columns = a.shape
    order = b.iota((count, rows), 1, torch.int32)
    panel, pivots, order = _eliminate(b, _at(b, a, None, start, rows, width), start, pivots, order, exchanges)
    if exchanges:
        a = _rows(b, a, order)
    a = _put(b, a, panel, None, start)
    if width == columns:
        return [a, pivots]
    behind = b.add(start, b.constant(width, torch.int32))
    strip = _at(b, a, start, None, width, columns)
    square = _at(b, panel, start, None, width, width)
    solved = b.op("triangular_solve", square, strip, shape=strip.shape, attributes=(
        "left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"))
    strip = b.select(_compared(b, strip.shape, 2, "GE", behind), solved, strip)
    a = _put(b, a, strip, start, None)
    rest = b.op("and", _compared(b, a.shape, 1, "GE", behind), _compared(b, a.shape, 2, "GE", behind))
    product = b.dot(panel, strip, ([2], [1]), ([0], [0]))
    return [b.select(rest, b.subtract(a, product), a), pivots]


def _lu(b: Builder, a: Value, exchanges: bool) -> tuple[Value, Value]:
    """The factors in one matrix, and the row, from 0 on, that each of the first rows was exchanged with."""
    count, rows, columns = a.shape
    least = min(rows, columns)
    pivots = b.iota((count, least), 1, torch.int32)
    whole = least // _PANEL
    if least % _PANEL == 0:
        whole -= 1

    def turn(i: Value, now: list[Value]) -> list[Value]:
        return _panel(b, now[0], b.multiply(i, b.constant(_PANEL, torch.int32)), _PANEL, now[1], exchanges)

    if whole:
        a, pivots = b.repeat(whole, [a, pivots], turn)
    return tuple(_panel(b, a, b.constant(whole * _PANEL, torch.int32), least - whole * _PANEL, pivots, exchanges))


@lowers(aten.linalg_lu_factor_ex.default)
def lu_factor(b: Builder, a: Value, *, pivot=True, check_errors=False):
    """`info` is the first column, from 1 on, whose diagonal element of U is 0, or 0."""
    _refuse_type(a)
    if check_errors:
        raise Unsupported("an error that depends on elements")
    factors, pivots, info = b.out
    if a.count == 0:
        return a, b.full(pivots.shape, 0, torch.int32), b.full(info.shape, 0, torch.int32)
    lu, exchanged = _lu(b, _batched(b, a), pivot)
    count, least = exchanged.shape
    rows = b.iota((count, least), 1, torch.int32)
    part = b.slice(lu, [0, 0, 0], [count, least, least])
    on_diagonal = b.compare(b.iota(part.shape, 1, torch.int32), b.iota(part.shape, 2, torch.int32), "EQ")
    is_zero = b.reduce(b.op("and", on_diagonal, b.compare(part, b.like(part, 0), "EQ")), [2], "or", False)
    first = b.reduce(b.select(is_zero, rows, b.full(rows.shape, least, torch.int32)), [1], "minimum", least)
    found = b.select(b.compare(first, b.full(first.shape, least, torch.int32), "EQ"), b.full(first.shape, 0, torch.int32), b.add(first, b.full(first.shape, 1, torch.int32)))
    return b.reshape(lu, a.shape), b.reshape(b.add(exchanged, b.full(exchanged.shape, 1, torch.int32)), pivots.shape), b.reshape(found, info.shape)


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


def _reflection(b: Builder, column: Value, j: Value) -> tuple[Value, Value, Value]:
    """For columns [matrices, rows], whose elements from row j on are to become (beta, 0, …): the vector v, 0 above row j and 1 there; tau, so
    that I - tau v v^H does the adjoint of that; beta."""
    count, rows = column.shape
    kind = REAL_OF.get(column.dtype, column.dtype)
    alpha = b.reshape(b.dynamic_slice(column, [b.constant(0, torch.int32), j], (count, 1)), (count,))
    below = b.select(_compared(b, column.shape, 1, "GT", j), column, b.like(column, 0))
    parts = [b.real(below), b.imag(below)] if below.dtype.is_complex else [below]
    tops = [b.real(alpha), b.imag(alpha)] if alpha.dtype.is_complex else [alpha]
    # Scaled by the largest element, so that squares neither overflow nor vanish.
    largest = b.reduce(_magnitude(b, below), [1], "maximum", 0)
    scale = largest
    for top in tops:
        scale = b.op("maximum", scale, b.op("abs", top))
    scale = b.select(b.compare(scale, b.like(scale, 0), "EQ"), b.like(scale, 1), scale)
    wide = b.broadcast_in_dim(scale, column.shape, [0])
    parts, scaled_tops = [b.divide(part, wide) for part in parts], [b.divide(top, scale) for top in tops]
    squares = None
    for part in parts:
        total = b.reduce(b.multiply(part, part), [1], "add", 0)
        squares = total if squares is None else b.add(squares, total)
    for top in scaled_tops:
        squares = b.add(squares, b.multiply(top, top))
    norm = b.multiply(b.op("sqrt", squares), scale)
    is_positive = b.compare(tops[0], b.like(norm, 0), "GE")
    beta = b.select(is_positive, b.op("negate", norm), norm)
    nothing = b.compare(largest, b.like(largest, 0), "EQ")
    if len(tops) == 2:
        nothing = b.op("and", nothing, b.compare(tops[1], b.like(tops[1], 0), "EQ"))
    beta = b.select(nothing, tops[0], beta)
    divisor = b.select(nothing, b.like(beta, 1), beta)
    tau = b.select(nothing, b.like(beta, 0), b.divide(b.subtract(beta, tops[0]), divisor))
    by = b.subtract(alpha, b.convert(beta, alpha.dtype))
    if len(tops) == 2:
        tau = b.complex(tau, b.select(nothing, b.like(beta, 0), b.divide(b.op("negate", tops[1]), divisor)))
        # A quotient of complex numbers may overflow where its parts are tiny.
        below = b.complex(*parts)
        by = b.complex(b.subtract(scaled_tops[0], b.divide(beta, scale)), scaled_tops[1])
    by = b.select(nothing, b.like(by, 1), by)
    v = b.divide(below, b.broadcast_in_dim(by, below.shape, [0]))
    v = b.select(_compared(b, v.shape, 1, "EQ", j), b.like(v, 1), v)
    assert tau.dtype == column.dtype and beta.dtype == kind
    return v, tau, beta


def _reflected(b: Builder, x: Value, v: Value, tau: Value) -> Value:
    """(I - tau v v^H) x."""
    products = b.dot(_conjugate(b, v), x, ([1], [1]), ([0], [0]))
    column = b.multiply(v, b.broadcast_in_dim(tau, v.shape, [0]))
    return b.subtract(x, b.multiply(b.broadcast_in_dim(column, x.shape, [0, 1]), b.broadcast_in_dim(products, x.shape, [0, 2])))


@lowers(aten.geqrf.default)
def geqrf(b: Builder, a: Value):
    """R, below it the reflections' vectors; and their factors."""
    _refuse_type(a)
    out, factors = b.out
    if a.count == 0:
        return a, b.full(factors.shape, 0, factors.dtype)
    shape = a.shape
    a = _batched(b, a)
    count, rows, columns = a.shape
    least = min(rows, columns)

    def turn(j: Value, now: list[Value]) -> list[Value]:
        a, taus = now
        column = b.reshape(_at(b, a, None, j, rows, 1), (count, rows))
        v, tau, beta = _reflection(b, column, j)
        rest = _reflected(b, a, v, _conjugate(b, tau))
        a = b.select(_compared(b, a.shape, 2, "GT", j), rest, a)
        own = b.select(_compared(b, v.shape, 1, "GT", j), v, column)
        own = b.select(_compared(b, v.shape, 1, "EQ", j), b.broadcast_in_dim(b.convert(beta, v.dtype), v.shape, [0]), own)
        a = _put(b, a, b.reshape(own, (count, rows, 1)), None, j)
        return [a, b.dynamic_update_slice(taus, b.reshape(tau, (count, 1)), [b.constant(0, torch.int32), j])]

    a, taus = b.repeat(least, [a, b.full((count, least), 0, a.dtype)], turn)
    return b.reshape(a, shape), b.reshape(taus, factors.shape)


def _product(b: Builder, a: Value, taus: Value, x: Value, adjoint: bool) -> Value:
    """Q x, or its adjoint times x, where Q is the product of the reflections whose vectors are below a's diagonal."""
    count, rows, _ = a.shape
    last = b.constant(taus.shape[1] - 1, torch.int32)

    def turn(i: Value, now: list[Value]) -> list[Value]:
        j = i if adjoint else b.subtract(last, i)
        v = b.reshape(_at(b, a, None, j, rows, 1), (count, rows))
        v = b.select(_compared(b, v.shape, 1, "GT", j), v, b.convert(_compared(b, v.shape, 1, "EQ", j), v.dtype))
        tau = b.reshape(b.dynamic_slice(taus, [b.constant(0, torch.int32), j], (count, 1)), (count,))
        return [_reflected(b, now[0], v, _conjugate(b, tau) if adjoint else tau)]

    return b.repeat(taus.shape[1], [x], turn)[0]


@lowers(aten.linalg_householder_product.default)
def householder_product(b: Builder, a: Value, taus: Value) -> Value:
    """The first columns of Q."""
    if a.count == 0:
        return a
    shape = a.shape
    if taus.count == 0:
        return eye(b, shape, a.dtype)
    a, taus = _batched(b, a), b.reshape(taus, (prod(shape[:-2]), taus.shape[-1]))
    unit = eye(b, a.shape, a.dtype)
    return b.reshape(_product(b, a, taus, unit, False), shape)


@lowers(aten.ormqr.default)
def ormqr(b: Builder, a: Value, taus: Value, x: Value, left=True, transpose=False) -> Value:
    if x.count == 0 or taus.count == 0:
        return x
    shape = x.shape
    a, x, taus = _batched(b, a), _batched(b, x), b.reshape(taus, (prod(taus.shape[:-1]), taus.shape[-1]))
    if left:
        return b.reshape(_product(b, a, taus, x, transpose), shape)
    result = _product(b, a, taus, _conjugate(b, b.transpose(x, [0, 2, 1])), not transpose)  # (Q^H x^H)^H
    return b.reshape(_conjugate(b, b.transpose(result, [0, 2, 1])), shape)


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
