// Factorisation and triangular systems of batched matrices.
//
// Small ones are loops over columns or rows. Larger ones are divided in halves, so that most of the
// work is in products of matrices: [A B^H; B C] has the factor [L 0; M N] with L of A, M L^H = B
// and N of C - M M^H. Many that have at most 8 rows are transposed to one vector for each element,
// over the batch, of which every step of the algorithm is one op.
#include <limits>
#include <map>
#include <tuple>
#include <utility>

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
  /// `count` rows from row `i` on, of shape [batch, count, columns].
  Value rows(Value x, Value i, int64_t count) const {
    return b_.dynamic_slice(x, starts(i, b_.i64_constant(0)), block(count, columns_));
  }
  /// The block of `count` rows and columns on the diagonal from row `i` on.
  Value diagonal_block(Value x, Value i, int64_t count) const {
    return b_.dynamic_slice(x, starts(i, i), block(count, count));
  }
  Value with_rows(Value x, Value rows, Value i) const {
    return b_.dynamic_update_slice(x, rows, starts(i, b_.i64_constant(0)));
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
  if (!b.ok() || !x) return {};
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

// The sum over k of x[i, k] y[k, j], or of x[i, k] y[j, k].
Value product(Builder& b, Value x, Value y, bool transposes_y = false) {
  if (!b.ok() || !x) return {};
  const int64_t batch = x.type().rank() - 2;
  return exact_dot(
      b, x, y, {counting(batch), counting(batch), {batch + 1}, {batch + (transposes_y ? 1 : 0)}});
}

// The block of `rows` and `columns` (begin, end) of every matrix.
using Range = std::pair<int64_t, int64_t>;
Value block(Builder& b, Value x, Range rows, Range columns) {
  if (!b.ok() || !x) return {};
  const Dims& dims = x.type().dims();
  I64s begin(dims.size(), 0);
  I64s end = dims;
  const size_t row = dims.size() - 2;
  std::tie(begin[row], end[row]) = rows;
  std::tie(begin[row + 1], end[row + 1]) = columns;
  return b.slice(x, std::move(begin), std::move(end), I64s(dims.size(), 1));
}

// The rows of a first half: of whole blocks.
int64_t half_of(int64_t size, int64_t block_size) {
  const int64_t blocks = (size + block_size - 1) / block_size;
  return (blocks + 1) / 2 * block_size;
}

// The sizes up to which algorithms are unrolled, are loops over columns or rows, and are loops over
// blocks of rows, or over rows of few columns. Loops do the work of what is still zero, too.
constexpr int64_t kMany = 16;
constexpr int64_t kUnrolled = 8;
constexpr int64_t kLoop = 32;
constexpr int64_t kLoopOfBlocks = 128;
// Columns below which products of matrices gain nothing.
constexpr int64_t kNarrow = 16;
// Larger systems end in loops over blocks, which take less code.
constexpr int64_t kFewBlocks = 16;
// Elements that an op of a loop may have so that the loop is one kernel.
constexpr int64_t kElementsOfLoop = 1024;

int64_t batch_count(const Type& type) {
  return element_count(Dims(type.dims().begin(), type.dims().end() - 2));
}
bool is_many(Value matrices) { return batch_count(matrices.type()) >= kMany; }
bool is_unrolled(Value matrices) {
  return is_many(matrices) && matrices.type().dims().back() <= kUnrolled;
}

// Matrices with their batch as the last dimension: an element of all of them is a vector.
class ByElements {
 public:
  ByElements(Builder& b, Value x) : b_(b), type_(x.type()) {
    const int64_t count = batch_count(type_);
    const int64_t rows = type_.dims()[type_.dims().size() - 2];
    sizes_ = {rows, type_.dims().back(), count};
    elements_ = b.transpose(b.reshape(x, {count, rows * sizes_[1]}), {1, 0});
  }

  /// Element (i, j), of shape [batch].
  Expr element(int64_t i, int64_t j) const { return {b_, part(i * sizes_[1] + j, 1, {sizes_[2]})}; }
  /// Row i, of shape [columns, batch].
  Expr row(int64_t i) const { return {b_, part(i * sizes_[1], sizes_[1], {sizes_[1], sizes_[2]})}; }
  /// Matrices of the same shape from parts of shape [batch], or [columns, batch], in order.
  Value joined(const std::vector<Value>& parts) const {
    if (!b_.ok()) return {};
    std::vector<Value> rows;
    for (const Value each : parts) {
      const bool is_element = each.type().rank() == 1;
      rows.push_back(is_element ? b_.reshape(each, {1, sizes_[2]}) : each);
    }
    return b_.reshape(b_.transpose(b_.concatenate(rows, 0), {1, 0}), type_.dims());
  }

 private:
  Value part(int64_t first, int64_t count, Dims shape) const {
    if (!b_.ok()) return {};
    return b_.reshape(b_.slice(elements_, {first, 0}, {first + count, sizes_[2]}, {1, 1}),
                      std::move(shape));
  }

  Builder& b_;
  Type type_;
  Dims sizes_;  // Rows, columns, batch.
  Value elements_;
};

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

Value solve(Builder& b, Value m, Value r, bool lower, bool unit, bool by_blocks = false);

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

// m x = r by rows of x. Those that are not solved yet are zero.
Value solve_by_rows(Builder& b, Value m, Value r, bool lower, bool unit) {
  if (!b.ok()) return {};
  const int64_t size = m.type().dims().back();
  const int64_t batch = m.type().rank() - 2;
  const int64_t width = r.type().dims().back();
  const std::vector<Value> state =
      count_loop(b, size, {strict_triangle(b, m, lower), m, r, b.splat(r.type().shape(), 0)},
                 [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                   const Matrices square(inner, s[2].type()), tall(inner, s[3].type());
                   const Value i = lower ? s[0] : inner.sub(inner.i64_constant(size - 1), s[0]);
                   const Value row = square.row(s[1], i);
                   const Value known = exact_dot(
                       inner, row, s[4], {counting(batch), counting(batch), {batch}, {batch}});
                   Value solved = inner.sub(tall.row(s[3], i), known);
                   if (!unit) {
                     const Value pivot = square.element(square.row(s[2], i), i);
                     solved = inner.div(solved, tall.repeat(pivot, width));
                   }
                   return {next(inner, s[0]), s[1], s[2], s[3], tall.with_row(s[4], solved, i)};
                 });
  return state.back();
}

// The same by blocks of kLoop rows, whose sums over the rows before are one product of
// matrices.
Value solve_by_blocks(Builder& b, Value m, Value r, bool lower, bool unit) {
  if (!b.ok()) return {};
  const int64_t count = m.type().dims().back() / kLoop;
  const std::vector<Value> state =
      count_loop(b, count, {strict_triangle(b, m, lower), m, r, b.splat(r.type().shape(), 0)},
                 [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                   const Matrices square(inner, s[2].type()), tall(inner, s[3].type());
                   const Value turn = lower ? s[0] : inner.sub(inner.i64_constant(count - 1), s[0]);
                   const Value i = inner.mul(turn, inner.i64_constant(kLoop));
                   const Value known = product(inner, square.rows(s[1], i, kLoop), s[4]);
                   const Value rest = inner.sub(tall.rows(s[3], i, kLoop), known);
                   const Value block = square.diagonal_block(s[2], i, kLoop);
                   const Value solved = solve_by_rows(inner, block, rest, lower, unit);
                   if (!inner.ok()) return {};
                   return {next(inner, s[0]), s[1], s[2], s[3], tall.with_rows(s[4], solved, i)};
                 });
  return state.back();
}

Value solve_by_elements(Builder& b, Value m, Value r, bool lower, bool unit) {
  if (!b.ok()) return {};
  const ByElements square(b, m), tall(b, r);
  const int64_t size = m.type().dims().back();
  std::vector<Value> solved(at(size));
  const Dims row = {r.type().dims().back(), batch_count(r.type())};
  const auto repeated = [&](const Expr& x) -> Expr {
    return {b, b.broadcast_in_dim(x.value(), row, {1})};
  };
  for (int64_t n = 0; n < size; ++n) {
    const int64_t i = lower ? n : size - 1 - n;
    Expr left = tall.row(i);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t j = lower ? k : size - 1 - k;
      left = left - repeated(square.element(i, j)) * Expr(b, solved[at(j)]);
    }
    if (!b.ok()) return {};
    solved[at(i)] = unit ? left.value() : (left / repeated(square.element(i, i))).value();
  }
  return tall.joined(solved);
}

// x with m x = r, where m is triangular; the other triangle is not read. `by_blocks`: of a system
// of more than kFewBlocks blocks.
Value solve(Builder& b, Value m, Value r, bool lower, bool unit, bool by_blocks) {
  if (!b.ok() || !m || !r) return {};
  const int64_t size = m.type().dims().back();
  if (is_unrolled(m)) return solve_by_elements(b, m, r, lower, unit);
  // The rows before are read once for a row: of few columns, that is all the work.
  const bool is_narrow = !is_many(m) && r.type().dims().back() < kNarrow;
  const int64_t most = is_narrow ? kLoopOfBlocks : kLoop;
  if (size <= most) return solve_by_rows(b, m, r, lower, unit);
  if (size == kLoopOfBlocks && by_blocks) return solve_by_blocks(b, m, r, lower, unit);
  by_blocks |= !is_many(m) && size > kFewBlocks * most;
  const int64_t half = half_of(size, by_blocks && size > kLoopOfBlocks ? kLoopOfBlocks : most);
  const Range first = {0, half}, second = {half, size}, all = {0, r.type().dims().back()};
  const auto [known, rest] = lower ? std::pair(first, second) : std::pair(second, first);
  const Value x =
      solve(b, block(b, m, known, known), block(b, r, known, all), lower, unit, by_blocks);
  const Value seen = product(b, block(b, m, rest, known), x);
  const Value y = solve(b, block(b, m, rest, rest), b.sub(block(b, r, rest, all), seen), lower,
                        unit, by_blocks);
  if (!b.ok()) return {};
  return b.concatenate(lower ? std::vector<Value>{x, y} : std::vector<Value>{y, x},
                       r.type().rank() - 2);
}

}  // namespace

Values triangular_solve(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Type& type = op.result_type();
  if (type.shape().element_count() == 0) return finished(b, {b.splat(type.shape(), 0)});
  const ElementType computed = computing_type(type.element_type());
  const auto transpose_a = op.enumeration<Transpose>(AttrKey::transpose_a);
  const bool left = op.flag(AttrKey::left_side);
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

  Value x = solve(b, m, r, lower, op.flag(AttrKey::unit_diagonal));
  if (!left) x = transposed(b, x);
  return finished(b, {b.ok() ? b.convert(x, type.element_type()) : Value{}});
}

}  // namespace tenon::hlo::decomposition
