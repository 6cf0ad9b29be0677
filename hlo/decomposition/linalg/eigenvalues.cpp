#include "hlo/decomposition/linalg/eigenvalues.h"

#include <cmath>
#include <utility>

#include "hlo/decomposition/linalg/householder.h"
#include "hlo/decomposition/linalg/jacobi.h"
#include "hlo/decomposition/linalg/small_matrices.h"

namespace tenon::hlo::decomposition {
namespace {

// Arrays of matrices as loops keep them: many small ones have the batch last, so that each element
// of all of them is a vector.
struct MemoryOrder {
  int64_t batch = 0, row = 1, column = 2;
  I64s from_batch_first = {0, 1, 2};

  explicit MemoryOrder(bool is_many) {
    if (!is_many) return;
    batch = 2, row = 0, column = 1;
    from_batch_first = {1, 2, 0};
  }
  bool is_batch_last() const { return batch == 2; }
  Dims dims(int64_t count, int64_t rows, int64_t columns) const {
    return is_batch_last() ? Dims{rows, columns, count} : Dims{count, rows, columns};
  }
  /// The dimensions of a number for each row or column: [batch, size] or [size, batch].
  I64s along(int64_t dimension) const {
    return is_batch_last() ? I64s{dimension, batch} : I64s{batch, dimension};
  }
  /// The shape of a number for each of `size` rows, and the dimension of the batch in it.
  Dims numbers(int64_t count, int64_t size) const {
    return is_batch_last() ? Dims{size, count} : Dims{count, size};
  }
  I64s across() const { return {is_batch_last() ? 1 : 0}; }
  Value enter(Builder& b, Value x) const {
    return is_batch_last() ? b.transpose(x, from_batch_first) : x;
  }
  Value leave(Builder& b, Value x) const { return is_batch_last() ? b.transpose(x, {2, 0, 1}) : x; }
  Value leave_numbers(Builder& b, Value x) const {
    return is_batch_last() ? b.transpose(x, {1, 0}) : x;
  }
};

// Numbers of the diagonals, for each row.
Expr diagonal_of(Builder& b, const Expr& x, const MemoryOrder& order, const Dims& dims) {
  const Expr is_on = places(b, dims, order.row) == places(b, dims, order.column);
  return {b, b.reduce(OpCode::kAdd, select(is_on, x, 0.0).value(), b.scalar(x.type(), 0),
                      {order.column})};
}

Expr sum_over(const Expr& x, I64s dimensions) {
  Builder& b = x.builder();
  return {b, b.reduce(OpCode::kAdd, x.value(), b.scalar(x.type(), 0), std::move(dimensions))};
}

// The greatest part of any element of each matrix [batch, rows, columns], 1 for a matrix of zeros.
Expr scale_of(const Expr& x) {
  Builder& b = x.builder();
  const Expr sizes = greatest_part(x);
  const Expr largest(b,
                     b.reduce(OpCode::kMaximum, sizes.value(), b.scalar(sizes.type(), 0), {1, 2}));
  return select(largest == 0.0, 1.0, largest);
}

Expr is_finite(const Expr& x) { return x.apply(OpCode::kIsFinite); }

// The matrix of which `a` has one triangle; its diagonal is real.
Expr hermitian(Builder& b, const Expr& a, bool lower, const Dims& dims) {
  const Expr row = places(b, dims, 1), column = places(b, dims, 2);
  const Expr other(b, adjoint_of(b, a.value()));
  const Expr kept = lower ? row > column : row < column;
  return select(row == column, as_type(real_part(a), a.type()), select(kept, a, other));
}

// Rotations of the rows of matrices with zeros behind them to an even size.
struct Padded {
  int64_t size;
  int64_t half;
  explicit Padded(int64_t size) : size(size), half((size + 1) / 2) {}
  int64_t even() const { return 2 * half; }
};

Value zeros_behind(Builder& b, Value x, int64_t rows, int64_t columns) {
  if (!b.ok() || (rows == 0 && columns == 0)) return x;
  const Value zero = b.scalar(x.type().element_type(), 0);
  return b.pad(x, zero, {0, 0, 0}, {0, rows, columns}, {0, 0, 0});
}

// One round of eigenvalues: rotations of rows, and of columns by the conjugates.
std::vector<Value> eigen_round(Builder& b, Value a, Value vectors, const MemoryOrder& order,
                               const Padded& n, int64_t count) {
  const Rounds rounds(b, n.half);
  const Dims square = order.dims(count, n.half, n.half);
  const Expr top(b, rounds.first(a, order.row).value());
  const Expr bottom(b, rounds.second(a, order.row).value());
  const Expr p = diagonal_of(b, rounds.first(top.value(), order.column), order, square);
  const Expr q = diagonal_of(b, rounds.second(bottom.value(), order.column), order, square);
  const Expr corner = diagonal_of(b, rounds.second(top.value(), order.column), order, square);
  const Rotation turn = rotation_of(real_part(p), real_part(q), corner);
  const Expr c = as_type(turn.c, corner.type());
  const auto turned = [&](Value x, const Expr& s, int64_t dimension, const Dims& dims) {
    return rounds.rotated(x, spread(c, dims, order.along(dimension)),
                          spread(s, dims, order.along(dimension)), dimension);
  };
  const Dims wide = order.dims(count, n.half, n.even()), tall = order.dims(count, n.even(), n.half);
  a = turned(a, turn.s, order.row, wide);
  a = turned(a, conjugate(turn.s), order.column, tall);
  return {a, turned(vectors, conjugate(turn.s), order.column, tall)};
}

}  // namespace

Eigen eigen_of(Builder& b, Value x, bool lower, bool sorts) {
  if (!b.ok()) return {};
  const Dims shape = x.type().dims();
  const ElementType type = x.type().element_type();
  const ElementType number = is_complex(type) ? complex_part(type) : type;
  const int64_t count = shape[0];
  if (is_small(x)) return small_eigen(b, x, lower, sorts);
  const Padded n(shape[1]);
  const MemoryOrder order(count >= kMany);
  const Expr whole = hermitian(b, Expr(b, x), lower, shape);
  const Expr scale = scale_of(whole);
  const Expr divided = whole / as_type(spread(scale, shape, {0}), type);
  const Expr known = is_finite(sum_over(squared_size(divided), {1, 2}));
  const Expr scaled = select(spread(known, shape, {0}), divided, 0.0);
  const int64_t more = n.even() - n.size;
  const Value start = order.enter(b, zeros_behind(b, scaled.value(), more, more));
  const Dims dims = order.dims(count, n.even(), n.even());
  const Expr is_on = places(b, dims, order.row) == places(b, dims, order.column);
  const Expr unit = select(is_on, Expr(b, b.splat(Shape(type, dims), 1)), 0.0);
  const I64s of_matrix = {order.row, order.column};
  // Rounding leaves more off the diagonal of a larger matrix.
  const double epsilon = epsilon_of(number);
  const double tolerance = epsilon * epsilon * static_cast<double>(n.size);
  const Expr bound = sum_over(squared_size(Expr(b, start)), of_matrix) * tolerance;
  const std::vector<Value> state = b.while_loop(
      {b.i64_constant(0), start, unit.value()},
      [&](Builder& inner, const std::vector<Value>& s) {
        const Expr here = places(inner, dims, order.row), there = places(inner, dims, order.column);
        const Expr off = select(here == there, 0.0, squared_size(Expr(inner, s[1])));
        const Expr is_due = sum_over(off, of_matrix) > Expr(inner, bound.value());
        const Value any =
            inner.reduce(OpCode::kOr, is_due.value(), inner.scalar(ElementType::kPred, 0), {0});
        return inner.make(OpCode::kAnd, {any, inner.compare(ComparisonDirection::kLt, s[0],
                                                            inner.i64_constant(kMostSweeps))});
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const std::vector<Value> swept = count_loop(
            inner, n.even() - 1, {s[1], s[2]},
            [&](Builder& round, const std::vector<Value>& now) -> std::vector<Value> {
              std::vector<Value> turned = eigen_round(round, now[1], now[2], order, n, count);
              return {next(round, now[0]), turned[0], turned[1]};
            });
        return {next(inner, s[0]), swept[1], swept[2]};
      });
  if (!b.ok()) return {};
  const Expr diagonal = diagonal_of(b, Expr(b, state[1]), order, dims);
  const Expr numbers(b, order.leave_numbers(b, real_part(diagonal).value()));
  const Dims flat = {count, n.size};
  Value values =
      (Expr(b, b.slice(numbers.value(), {0, 0}, flat)) * spread(scale, flat, {0})).value();
  const Range inside = {0, n.size};
  Value vectors = block(b, order.leave(b, state[2]), inside, inside);
  if (sorts) {
    const Value places_of = sorted_places(b, values, false);
    values = rows_at(b, values, places_of);
    vectors = transposed(b, rows_at(b, transposed(b, vectors), places_of));
  }
  vectors = select(spread(known, shape, {0}), Expr(b, vectors), kNan).value();
  return {vectors, select(spread(known, flat, {0}), Expr(b, values), kNan).value()};
}

namespace {

// U S V^H of square matrices r [batch, size, size]: the rows w of r, rotated until they are
// orthogonal, are S V^H; the rotations j of the rows of 1 are U^H. Returns j, w as the loop has
// them.
std::vector<Value> orthogonal_rows(Builder& b, Value r, ElementType type, const MemoryOrder& order,
                                   const Padded& n, int64_t count) {
  const ElementType number = is_complex(type) ? complex_part(type) : type;
  const double epsilon = epsilon_of(number);
  const double bound = epsilon * std::sqrt(static_cast<double>(n.size));
  const Expr total = sum_over(squared_size(Expr(b, r)), {1, 2});
  const Expr floor = total * (bound * bound);
  const Value start = order.enter(b, zeros_behind(b, r, n.even() - n.size, 0));
  const Dims square = order.dims(count, n.even(), n.even());
  const Dims half = order.dims(count, n.half, n.size),
             half_of_j = order.dims(count, n.half, n.even());
  const Expr is_on = places(b, square, order.row) == places(b, square, order.column);
  const Expr unit = select(is_on, Expr(b, b.splat(Shape(type, square), 1)), 0.0);
  // s: sweeps, the greatest cosine between two rows of the last one, w, j.
  std::vector<Value> state = b.while_loop(
      {b.i64_constant(0), b.scalar(number, 1), start, unit.value()},
      [&](Builder& inner, const std::vector<Value>& s) {
        const Value is_due =
            inner.compare(ComparisonDirection::kGt, s[1], inner.scalar(number, bound));
        return inner.make(OpCode::kAnd, {is_due, inner.compare(ComparisonDirection::kLt, s[0],
                                                               inner.i64_constant(kMostSweeps))});
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const std::vector<Value> swept = count_loop(
            inner, n.even() - 1, {inner.scalar(number, 0), s[2], s[3]},
            [&](Builder& round, const std::vector<Value>& now) -> std::vector<Value> {
              const Rounds rounds(round, n.half);
              const Expr p = rounds.first(now[2], order.row), q = rounds.second(now[2], order.row);
              const Expr alpha = sum_over(squared_size(p), {order.column});
              const Expr beta = sum_over(squared_size(q), {order.column});
              const Expr corner = sum_over(p * conjugate(q), {order.column});
              const Expr least =
                  spread(Expr(round, floor.value()), order.numbers(count, n.half), order.across());
              const RowPair pair = row_pair(alpha, beta, corner, least);
              const Rotation& turn = pair.rotation;
              const Expr c = as_type(turn.c, type);
              const auto turned = [&](Value x, const Dims& dims) {
                return rounds.rotated(x, spread(c, dims, order.along(order.row)),
                                      spread(turn.s, dims, order.along(order.row)), order.row);
              };
              const Value greatest =
                  round.reduce(OpCode::kMaximum, pair.cosine.value(), now[1], {0, 1});
              return {next(round, now[0]), greatest, turned(now[2], half),
                      turned(now[3], half_of_j)};
            });
        return {next(inner, s[0]), swept[1], swept[2], swept[3]};
      });
  if (!b.ok()) return {{}, {}};
  return {state[3], state[2]};
}

// Rows that are orthonormal to rounding, also where w's are zero: Q of w^H by reflections, with the
// phases of R's diagonal.
Value orthonormal_rows(Builder& b, Value w, const Dims& dims, ElementType type) {
  const Reflections q = qr_of(b, adjoint_of(b, w));
  const Expr columns(b, reflected(b, q, identity(b, type, dims), false));
  const Expr diagonal = diagonal_of(b, Expr(b, q.matrix), MemoryOrder(false), dims);
  const Expr size = abs(diagonal), is_zero = size == 0.0;
  const Expr safe = select(is_zero, 1.0, size);
  const Expr phase = select(is_zero, diagonal.constant(1), diagonal / as_type(safe, type));
  return adjoint_of(b, (columns * spread(phase, dims, {0, 2})).value());
}

// The factors of matrices with as many rows as columns at least.
SingularValues of_tall(Builder& b, Value a, bool full) {
  const Dims shape = a.type().dims();
  const ElementType type = a.type().element_type();
  const int64_t count = shape[0], rows = shape[1], size = shape[2];
  const Padded n(size);
  const MemoryOrder order(count >= kMany);
  const Expr scale = scale_of(Expr(b, a));
  const Expr divided = Expr(b, a) / as_type(spread(scale, shape, {0}), type);
  const Expr known = is_finite(sum_over(squared_size(divided), {1, 2}));
  // A matrix that is not finite must not keep the loop of the others.
  const Expr scaled = select(spread(known, shape, {0}), divided, 0.0);
  const Reflections q = qr_of(b, scaled.value());
  const Dims square = {count, size, size}, flat = {count, size};
  const Expr upper(b, block(b, q.matrix, {0, size}, {0, size}));
  const Expr r = select(places(b, square, 1) <= places(b, square, 2), upper, 0.0);
  const std::vector<Value> turned = orthogonal_rows(b, r.value(), type, order, n, count);
  // After whole sweeps rows are where they were.
  const Range inside = {0, size};
  Value w = block(b, order.leave(b, turned[1]), inside, inside);
  Value j = block(b, order.leave(b, turned[0]), inside, inside);
  const Expr norms = sqrt(sum_over(squared_size(Expr(b, w)), {2}));
  const Value order_of = sorted_places(b, norms.value(), true);
  const Expr values(b, rows_at(b, norms.value(), order_of));
  w = orthonormal_rows(b, rows_at(b, w, order_of), square, type);
  Value u = adjoint_of(b, rows_at(b, j, order_of));
  if (rows > size) {
    u = zeros_behind(b, u, rows - size, full ? rows - size : 0);
    const Dims all = {count, rows, rows};
    if (full) {
      const Expr row = places(b, all, 1), behind = filled(b, b.i64_constant(size), all);
      const Expr is_one = (row >= behind) & (row == places(b, all, 2));
      u = select(is_one, Expr(b, u).constant(1), Expr(b, u)).value();
    }
  }
  u = reflected(b, q, u, false);
  const auto checked = [&](const Expr& x, const Dims& dims) {
    return select(spread(known, dims, {0}), x, kNan).value();
  };
  return {checked(Expr(b, u), {count, rows, full ? rows : size}),
          checked(values * spread(scale, flat, {0}), flat), checked(Expr(b, w), square)};
}

}  // namespace

SingularValues singular_values_of(Builder& b, Value a, bool full_matrices) {
  if (!b.ok()) return {};
  const Dims& dims = a.type().dims();
  if (dims[1] >= dims[2] && is_small(a)) return small_singular_values(b, a, full_matrices);
  if (dims[1] >= dims[2]) return of_tall(b, a, full_matrices);
  const SingularValues adjoint = singular_values_of(b, adjoint_of(b, a), full_matrices);
  return {adjoint_of(b, adjoint.vh), adjoint.s, adjoint_of(b, adjoint.u)};
}

}  // namespace tenon::hlo::decomposition
