// Factorisation and triangular systems, by loops over columns or rows of batched matrices.
#include <limits>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// Batched matrices: all dimensions except the last two are batch dimensions.
class Matrices {
 public:
  Matrices(Builder& b, const Type& type) : b_(b), dims_(type.dims()) {
    rows_ = dims_[dims_.size() - 2];
    columns_ = dims_.back();
    batch_.assign(dims_.begin(), dims_.end() - 2);
  }

  /// Start indices that are zero except for the last two.
  std::vector<Value> starts(Value row, Value column) const {
    std::vector<Value> starts = zero_starts(b_, batch_.size());
    starts.insert(starts.end(), {row, column});
    return starts;
  }
  /// Row `i`, of shape [batch, columns].
  Value row(Value x, Value i) const {
    return part(x, starts(i, b_.i64_constant(0)), 1, columns_, with(columns_));
  }
  /// Column `j`, of shape [batch, rows].
  Value column(Value x, Value j) const {
    return part(x, starts(b_.i64_constant(0), j), rows_, 1, with(rows_));
  }
  Value with_row(Value x, Value row, Value i) const {
    return b_.dynamic_update_slice(x, b_.reshape(row, block(1, columns_)),
                                   starts(i, b_.i64_constant(0)));
  }
  Value with_column(Value x, Value column, Value j) const {
    return b_.dynamic_update_slice(x, b_.reshape(column, block(rows_, 1)),
                                   starts(b_.i64_constant(0), j));
  }
  /// Element i of every row of a [batch, size] array, of shape [batch].
  Value element(Value x, Value i) const {
    std::vector<Value> starts = zero_starts(b_, batch_.size());
    starts.push_back(i);
    return b_.reshape(b_.dynamic_slice(x, starts, with(1)), batch_);
  }
  /// A [batch] array broadcast to [batch, size].
  Value repeat(Value x, int64_t size) const {
    return b_.broadcast_in_dim(x, with(size), counting(static_cast<int64_t>(batch_.size())));
  }
  /// 0, 1, … along the last dimension of [batch, size].
  Expr positions(int64_t size) const {
    return {b_, b_.iota(ElementType::kS64, with(size), static_cast<int64_t>(batch_.size()))};
  }
  Expr everywhere(Value i, int64_t size) const { return {b_, b_.broadcast_scalar(i, with(size))}; }
  Dims with(int64_t size) const {
    Dims dims = batch_;
    dims.push_back(size);
    return dims;
  }

 private:
  Dims block(int64_t rows, int64_t columns) const {
    Dims dims = batch_;
    dims.insert(dims.end(), {rows, columns});
    return dims;
  }
  Value part(Value x, std::vector<Value> starts, int64_t rows, int64_t columns, Dims shape) const {
    return b_.reshape(b_.dynamic_slice(x, std::move(starts), block(rows, columns)),
                      std::move(shape));
  }

  Builder& b_;
  Dims dims_;
  Dims batch_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};

Value transposed(Builder& b, Value x) {
  if (!b.ok()) return {};
  I64s permutation = counting(x.type().rank());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return b.transpose(x, std::move(permutation));
}

Expr conjugate(const Expr& x) { return is_complex(x.type()) ? complex(real(x), -imag(x)) : x; }

Expr real_part(const Expr& x) { return is_complex(x.type()) ? real(x) : x; }

// A real number as an element of `type`.
Expr as_type(const Expr& x, ElementType type) {
  return is_complex(type) ? complex(x, x.constant(0)) : x;
}

// Sum over the last dimension of [batch, m, k] by [batch, k].
Value matrix_vector(Builder& b, Value matrix, Value vector) {
  if (!b.ok()) return {};
  const int64_t batch = vector.type().rank() - 1;
  return exact_dot(b, matrix, vector, {counting(batch), counting(batch), {batch + 1}, {batch}});
}

Value next(Builder& b, Value i) { return b.add(i, b.i64_constant(1)); }

// A loop that increments state[0] up to `count`.
std::vector<Value> count_loop(
    Builder& b, int64_t count, std::vector<Value> state,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body) {
  state.insert(state.begin(), b.i64_constant(0));
  return b.while_loop(
      state,
      [count](Builder& inner, const std::vector<Value>& s) {
        return inner.compare(ComparisonDirection::kLt, s[0], inner.i64_constant(count));
      },
      body);
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
  const Expr pivot = select(squared > 0.0, sqrt(squared), std::numeric_limits<double>::quiet_NaN());
  const Expr diagonal(b, m.repeat(as_type(pivot, type).value(), size));
  const Expr here = m.positions(size), column = m.everywhere(j, size);
  return select(here > column, left / diagonal, select(here == column, diagonal, 0.0)).value();
}

// If the matrix is not positive definite, makes every element of the factor NaN, including the
// columns before the bad pivot, because callers test any of them. A bad pivot makes all later ones
// NaN.
Value nan_unless_positive(Builder& b, Value l) {
  if (!b.ok()) return {};
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
  std::vector<Value> state = {a, b.splat(type.shape().with_element_type(computed), 0)};
  state = count_loop(b, type.dims().back(), state,
                     [](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                       const Value column = cholesky_column(inner, s[1], s[2], s[0]);
                       if (!inner.ok()) return {};
                       const Matrices m(inner, s[2].type());
                       return {next(inner, s[0]), s[1], m.with_column(s[2], column, s[0])};
                     });
  Value l = nan_unless_positive(b, state.back());
  if (!lower) l = conjugate(Expr(b, transposed(b, l))).value();
  return finished(b, {b.ok() ? b.convert(l, type.element_type()) : Value{}});
}

namespace {

// `m` without its diagonal and the triangle that must not be read.
Value strict_triangle(Builder& b, Value m, bool lower) {
  if (!b.ok()) return {};
  const Dims& dims = m.type().dims();
  const int64_t rank = m.type().rank();
  const Expr row(b, b.iota(ElementType::kS64, dims, rank - 2));
  const Expr column(b, b.iota(ElementType::kS64, dims, rank - 1));
  return select(lower ? column < row : column > row, Expr(b, m), 0.0).value();
}

}  // namespace

Values triangular_solve(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Type& type = op.result_type();
  if (type.shape().element_count() == 0) return finished(b, {b.splat(type.shape(), 0)});
  const ElementType computed = computing_type(type.element_type());
  const auto transpose_a = op.enumeration<Transpose>(AttrKey::transpose_a);
  const bool left = op.flag(AttrKey::left_side);
  const bool unit = op.flag(AttrKey::unit_diagonal);
  // x op(a) = b is op(a)^T x^T = b^T: from here on m x = r, where m is a or a^T, possibly
  // conjugated.
  const bool is_transposed = (transpose_a != Transpose::kNoTranspose) == left;
  const bool lower = op.flag(AttrKey::lower) != is_transposed;
  Value m = b.convert(op.operand(0), computed);
  Value r = b.convert(op.operand(1), computed);
  if (is_transposed) m = transposed(b, m);
  if (transpose_a == Transpose::kAdjoint) m = conjugate(Expr(b, m)).value();
  if (!left) r = transposed(b, r);
  if (!b.ok()) return Error(b.status());

  const int64_t size = m.type().dims().back();
  const int64_t batch = m.type().rank() - 2;
  const int64_t width = r.type().dims().back();
  std::vector<Value> state = {strict_triangle(b, m, lower), m, r, b.splat(r.type().shape(), 0)};
  state = count_loop(
      b, size, state, [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const Matrices square(inner, s[2].type()), tall(inner, s[3].type());
        const Value i = lower ? s[0] : inner.sub(inner.i64_constant(size - 1), s[0]);
        // Rows of x that are not solved yet are zero.
        const Value row = square.row(s[1], i);
        const Value known =
            exact_dot(inner, row, s[4], {counting(batch), counting(batch), {batch}, {batch}});
        Value solved = inner.sub(tall.row(s[3], i), known);
        if (!unit) {
          const Value pivot = square.element(square.row(s[2], i), i);
          solved = inner.div(solved, tall.repeat(pivot, width));
        }
        return {next(inner, s[0]), s[1], s[2], s[3], tall.with_row(s[4], solved, i)};
      });
  Value x = state.back();
  if (!left) x = transposed(b, x);
  return finished(b, {b.ok() ? b.convert(x, type.element_type()) : Value{}});
}

}  // namespace tenon::hlo::decomposition
