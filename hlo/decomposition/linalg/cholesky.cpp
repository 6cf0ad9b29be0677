// Cholesky factors of batched matrices.
//
// Small ones are loops over columns or rows. Larger ones are divided in halves, so that most of the
// work is in products of matrices: [A B^H; B C] has the factor [L 0; M N] with L of A, M L^H = B
// and N of C - M M^H. Many that have at most 8 rows are transposed to one vector for each element,
// over the batch, of which every step of the algorithm is one op.
#include <limits>
#include <map>
#include <utility>

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {
namespace {

// Elements that an op of a loop may have so that the loop is one kernel.
constexpr int64_t kElementsOfLoop = 1024;

// The pivot of a diagonal element without what is before it: NaN unless it is positive.
Expr pivot_of(const Expr& squared) {
  return select(squared > 0.0, sqrt(squared), std::numeric_limits<double>::quiet_NaN());
}

// One column of L with a = L L^H: (a - L L^H) divided by the pivot. Columns of L from j on are
// still zero.
Value cholesky_column(Builder& b, Value a, Value l, Value j) {
  const Matrices m(b, a.type());
  const int64_t size = a.type().dims().back();
  const ElementType type = a.type().element_type();
  const Expr row = conjugate(Expr(b, m.row(l, j)));
  const Expr left = Expr(b, m.column(a, j)) - Expr(b, matrix_vector(b, l, row.value()));
  const Expr squared = real_part(Expr(b, m.element(left.value(), j)));
  const Expr diagonal(b, m.repeat(as_type(pivot_of(squared), type).value(), size));
  const Expr here = m.positions(size), column = m.everywhere(j, size);
  return select(here > column, left / diagonal, select(here == column, diagonal, 0.0)).value();
}

Value factor_by_columns(Builder& b, Value a) {
  if (!b.ok()) return {};
  const std::vector<Value> state =
      count_loop(b, a.type().dims().back(), {a, b.splat(a.type().shape(), 0)},
                 [](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                   const Value column = cholesky_column(inner, s[1], s[2], s[0]);
                   if (!inner.ok()) return {};
                   const Matrices m(inner, s[2].type());
                   return {next(inner, s[0]), s[1], m.with_column(s[2], column, s[0])};
                 });
  return state.back();
}

// The upper factor row by row: each is taken off what is left of the matrix, by one elementwise op
// on all of it. The lower triangle holds numbers that nothing reads.
Value factor_by_rows(Builder& b, Value a) {
  if (!b.ok()) return {};
  const Dims dims = a.type().dims();
  const int64_t rank = a.type().rank(), size = dims.back();
  const ElementType type = a.type().element_type();
  const Value adjoint = conjugate(Expr(b, transposed(b, a))).value();
  const auto step = [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
    const Matrices m(inner, s[1].type());
    const Value j = s[0];
    const Expr left(inner, m.row(s[1], j));
    const Expr squared = real_part(Expr(inner, m.element(left.value(), j)));
    const Expr pivot(inner, m.repeat(as_type(pivot_of(squared), type).value(), size));
    const Expr here = m.positions(size), column = m.everywhere(j, size);
    const Expr row = select(here > column, left / pivot, select(here == column, pivot, 0.0));
    const auto along = [&](const Expr& x, int64_t axis) -> Expr {
      I64s to = counting(rank - 2);
      to.push_back(axis);
      return {inner, inner.broadcast_in_dim(x.value(), dims, std::move(to))};
    };
    const Expr rows(inner, inner.iota(ElementType::kS64, dims, rank - 2));
    const Expr across = along(row, rank - 1);
    const Expr rest = Expr(inner, s[1]) - along(conjugate(row), rank - 2) * across;
    const Expr now(inner, inner.broadcast_scalar(j, dims));
    return {next(inner, j), select(rows == now, across, rest).value()};
  };
  const Value factored = count_loop(b, size, {adjoint}, step).back();
  if (!b.ok()) return {};
  const Expr row(b, b.iota(ElementType::kS64, dims, rank - 2));
  const Expr column(b, b.iota(ElementType::kS64, dims, rank - 1));
  const Expr upper = select(column >= row, Expr(b, factored), 0.0);
  return conjugate(Expr(b, transposed(b, upper.value()))).value();
}

Value factor_by_elements(Builder& b, Value a) {
  if (!b.ok()) return {};
  const ByElements m(b, a);
  const int64_t size = a.type().dims().back();
  const ElementType type = a.type().element_type();
  std::map<std::pair<int64_t, int64_t>, Expr> l;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = j; i < size; ++i) {
      Expr left = m.element(i, j);
      for (int64_t k = 0; k < j; ++k) left = left - l.at({i, k}) * conjugate(l.at({j, k}));
      const bool is_pivot = i == j;
      l[{i, j}] = is_pivot ? as_type(pivot_of(real_part(left)), type) : left / l.at({j, j});
    }
  }
  std::vector<Value> parts;
  const Value zero = m.element(0, 0).constant(0).value();
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) parts.push_back(j > i ? zero : l.at({i, j}).value());
  }
  return m.joined(parts);
}

// The lower factor of `a`, of which the lower triangle is read.
Value factor(Builder& b, Value a) {
  if (!b.ok() || !a) return {};
  const int64_t size = a.type().dims().back();
  if (is_unrolled(a)) return factor_by_elements(b, a);
  if (element_count(a.type().dims()) <= kElementsOfLoop) return factor_by_rows(b, a);
  if (size <= kLoop) return factor_by_columns(b, a);
  const int64_t half = half_of(size, kLoop);
  const Range first = {0, half}, second = {half, size};
  const Value top = factor(b, block(b, a, first, first));
  // M L^H = B is L M^H = B^H.
  const Expr wanted(b, transposed(b, block(b, a, second, first)));
  if (!b.ok()) return {};
  const Expr m = conjugate(Expr(b, solve(b, top, conjugate(wanted).value(), true, false)));
  const Value side = transposed(b, m.value());
  const Value square = product(b, side, conjugate(Expr(b, side)).value(), true);
  const Value bottom = factor(b, b.sub(block(b, a, second, second), square));
  if (!b.ok()) return {};
  const int64_t rank = a.type().rank();
  Dims above = top.type().dims();
  above.back() = size - half;
  const Value zero = b.splat(Shape(a.type().element_type(), above), 0);
  return b.concatenate(
      {b.concatenate({top, zero}, rank - 1), b.concatenate({side, bottom}, rank - 1)}, rank - 2);
}

// If the matrix is not positive definite, makes every element of the factor NaN, including the
// columns before the bad pivot, because callers test any of them. A bad pivot makes all later ones
// NaN.
Value nan_unless_positive(Builder& b, Value l) {
  if (!b.ok() || !l) return {};
  const Matrices m(b, l.type());
  const Dims& dims = l.type().dims();
  const int64_t rank = l.type().rank();
  const Value end = b.i64_constant(dims.back() - 1);
  const Expr last_pivot(b, m.element(m.row(l, end), end));
  const Value failed = (last_pivot != last_pivot).value();
  const Expr everywhere(b, b.broadcast_in_dim(failed, dims, counting(rank - 2)));
  const Expr row(b, b.iota(ElementType::kS64, dims, rank - 2));
  const Expr column(b, b.iota(ElementType::kS64, dims, rank - 1));
  const Expr nan(b, b.splat(l.type().shape(), std::numeric_limits<double>::quiet_NaN()));
  return select(everywhere & (column <= row), nan, Expr(b, l)).value();
}

}  // namespace

Values cholesky(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Type& type = op.result_type();
  if (type.shape().element_count() == 0) return finished(b, {b.splat(type.shape(), 0)});
  const ElementType computed = computing_type(type.element_type());
  const bool lower = op.flag(AttrKey::lower);
  // The upper factor is the adjoint of the lower factor of the adjoint, and reads the other
  // triangle.
  Value a = b.convert(op.operand(0), computed);
  if (!lower) a = conjugate(Expr(b, transposed(b, a))).value();
  Value l = nan_unless_positive(b, factor(b, a));
  if (!lower) l = conjugate(Expr(b, transposed(b, l))).value();
  return finished(b, {b.ok() ? b.convert(l, type.element_type()) : Value{}});
}

}  // namespace tenon::hlo::decomposition
