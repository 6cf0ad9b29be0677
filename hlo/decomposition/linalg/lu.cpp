// Columns are eliminated one by one within a panel; what they change in the rest of the matrix is a
// product of matrices. Panels are turns of a loop that works on all of up to kLoopColumns columns;
// larger matrices are divided in halves.
#include "hlo/decomposition/linalg/lu.h"

#include <algorithm>
#include <utility>

#include "hlo/decomposition/linalg/jacobi.h"

namespace tenon::hlo::decomposition {
namespace {

// Columns of a panel, and of a matrix whose panels are turns of a loop.
constexpr int64_t kPanel = 16;
constexpr int64_t kLoopColumns = 256;
// Rows and columns up to which many matrices are unrolled: exchanges of rows are many selections.
constexpr int64_t kUnrolledLu = 5;

// The places of an array of s32.
Expr indices(Builder& b, const Dims& dims, int64_t dimension) {
  return {b, b.iota(ElementType::kS32, dims, dimension)};
}

// |re| + |im|, by which LAPACK chooses.
Expr magnitude(const Expr& x) {
  return is_complex(x.type()) ? abs(real(x)) + abs(imag(x)) : abs(x);
}

// The parts of a matrix that a loop changes.
struct Elimination {
  Value panel;   // [batch, rows, width]
  Value pivots;  // s32 [batch, least]
  Value order;   // s32 [batch, rows], of the rows of this panel.
};

class LuBuilder {
 public:
  LuBuilder(const Dims& dims, bool exchanges)
      : batch_(dims[0]), rows_(dims[1]), columns_(dims[2]), exchanges_(exchanges) {}

  LuFactors factor(Builder& b, Value a) const {
    const int64_t least = std::min(rows_, columns_);
    const Value order = b.iota(ElementType::kS32, {batch_, rows_}, 1);
    LuFactors now = {a, b.iota(ElementType::kS32, {batch_, least}, 1), order};
    const int64_t whole = (least - 1) / kPanel;
    if (whole > 0) {
      const std::vector<Value> state =
          count_loop(b, whole, {now.matrix, now.pivots, now.order},
                     [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                       const Value start = inner.mul(s[0], inner.i64_constant(kPanel));
                       const LuFactors turn = panel(inner, {s[1], s[2], s[3]}, start, kPanel);
                       return {next(inner, s[0]), turn.matrix, turn.pivots, turn.order};
                     });
      now = {state[1], state[2], state[3]};
    }
    return panel(b, now, b.i64_constant(whole * kPanel), least - whole * kPanel);
  }

 private:
  // The row of each matrix from `first` on whose element of `column` [batch, rows] is the first of
  // the greatest; `first` where one is NaN.
  Expr best_row(Builder& b, const Expr& column, Value first) const {
    const Dims dims = {batch_, rows_};
    const Expr row = indices(b, dims, 1);
    const Expr begin(b, b.convert(first, ElementType::kS32));
    const Expr size = select(row >= filled(b, begin.value(), dims), magnitude(column), -1.0);
    const Expr best(b, b.reduce(OpCode::kMaximum, size.value(), b.scalar(size.type(), -1), {1}));
    const auto none = static_cast<double>(rows_);
    const Expr places_of = select(size == spread(best, dims, {0}), row, none);
    const Expr place(
        b, b.reduce(OpCode::kMinimum, places_of.value(), b.scalar(ElementType::kS32, none), {1}));
    return select(place == none, filled(b, begin.value(), {batch_}), place);
  }

  // x [batch, rows, …] with row `row` of each matrix and its row `other` [batch] exchanged.
  Value exchanged(Builder& b, Value x, Value row, const Expr& other) const {
    if (!b.ok()) return {};
    const Dims dims = x.type().dims();
    Dims one = dims;
    one[1] = 1;
    std::vector<Value> starts = zero_starts(b, dims.size());
    starts[1] = row;
    const Value own = b.dynamic_slice(x, starts, one);
    const Expr is_other = indices(b, dims, 1) == spread(other, dims, {0});
    const Expr kept = select(is_other, Expr(b, x), 0.0);
    const Value others = b.reduce(OpCode::kAdd, kept.value(), b.scalar(kept.type(), 0), {1});
    const Expr moved =
        select(is_other, spread(Expr(b, own), dims, counting(x.type().rank())), Expr(b, x));
    return b.dynamic_update_slice(moved.value(), b.reshape(others, one), starts);
  }

  Elimination eliminate_columns(Builder& b, Elimination start_state, Value start,
                                int64_t width) const {
    const Dims dims = {batch_, rows_, width}, tall = {batch_, rows_, 1};
    const auto step = [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
      const Value zero = inner.i64_constant(0), j = s[0], diagonal = inner.add(start, j);
      Elimination now = {s[1], s[2], s[3]};
      if (exchanges_) {
        const Expr column(
            inner,
            inner.reshape(inner.dynamic_slice(now.panel, {zero, zero, j}, tall), {batch_, rows_}));
        const Expr best = best_row(inner, column, diagonal);
        now.panel = exchanged(inner, now.panel, diagonal, best);
        now.order = exchanged(inner, now.order, diagonal, best);
        now.pivots = inner.dynamic_update_slice(
            now.pivots, inner.reshape(best.value(), {batch_, 1}), {zero, diagonal});
      }
      const Expr column(inner, inner.dynamic_slice(now.panel, {zero, zero, j}, tall));
      const Expr pivot(inner, inner.dynamic_slice(now.panel, {zero, diagonal, j}, {batch_, 1, 1}));
      const Expr row(inner,
                     inner.dynamic_slice(now.panel, {zero, diagonal, zero}, {batch_, 1, width}));
      const Expr divisor = spread(pivot, tall, {0, 1, 2});
      const Expr is_below = places(inner, tall, 1) > filled(inner, diagonal, tall);
      const Expr factors = select(is_below & (divisor != 0.0), column / divisor, column);
      const Expr below = places(inner, dims, 1) > filled(inner, diagonal, dims);
      const Expr place = places(inner, dims, 2), here = filled(inner, j, dims);
      const Expr factor = spread(factors, dims, {0, 1, 2});
      const Expr rest = Expr(inner, now.panel) - factor * spread(row, dims, {0, 1, 2});
      const Expr changed = select(below & (place > here), rest,
                                  select(place == here, factor, Expr(inner, now.panel)));
      return {next(inner, j), changed.value(), now.pivots, now.order};
    };
    const std::vector<Value> state =
        count_loop(b, width, {start_state.panel, start_state.pivots, start_state.order}, step);
    return {state[1], state[2], state[3]};
  }

  // `width` columns from `start` on, and what they change in the rest of the matrix.
  LuFactors panel(Builder& b, LuFactors now, Value start, int64_t width) const {
    const Value zero = b.i64_constant(0);
    const Dims dims = {batch_, rows_, columns_};
    const Value own = b.iota(ElementType::kS32, {batch_, rows_}, 1);
    const Value columns = b.dynamic_slice(now.matrix, {zero, zero, start}, {batch_, rows_, width});
    const Elimination done = eliminate_columns(b, {columns, now.pivots, own}, start, width);
    Value a = now.matrix, order = now.order;
    if (exchanges_) {
      a = rows_at(b, a, done.order);
      order = rows_at(b, order, done.order);
    }
    a = b.dynamic_update_slice(a, done.panel, {zero, zero, start});
    if (width == columns_) return {a, done.pivots, order};
    const Value behind = b.add(start, b.i64_constant(width));
    const Dims strip_dims = {batch_, width, columns_};
    const Value strip = b.dynamic_slice(a, {zero, start, zero}, strip_dims);
    const Value square = b.dynamic_slice(done.panel, {zero, start, zero}, {batch_, width, width});
    const Expr solved(b, solve(b, square, strip, true, true));
    const Expr is_right = places(b, strip_dims, 2) >= filled(b, behind, strip_dims);
    const Value upper = select(is_right, solved, Expr(b, strip)).value();
    a = b.dynamic_update_slice(a, upper, {zero, start, zero});
    const Expr from = filled(b, behind, dims);
    const Expr is_rest = (places(b, dims, 1) >= from) & (places(b, dims, 2) >= from);
    const Expr rest = Expr(b, a) - Expr(b, product(b, done.panel, upper));
    return {select(is_rest, rest, Expr(b, a)).value(), done.pivots, order};
  }

  int64_t batch_, rows_, columns_;
  bool exchanges_;
};

}  // namespace

namespace {

// Many matrices that have kUnrolledLu rows and columns at most: each element of all of them is a
// vector.
LuFactors lu_by_elements(Builder& b, Value a, bool exchanges) {
  const ByElements m(b, a);
  const Dims dims = a.type().dims();
  const int64_t rows = dims[1], columns = dims[2], least = std::min(rows, columns);
  const auto row_of = [&](int64_t i) { return at(i * columns); };
  std::vector<Expr> elements;  // Row-major.
  std::vector<Expr> order;
  std::vector<Value> pivots;
  const auto number = [&](int64_t i) {
    return Expr(b, b.splat(Shape(ElementType::kS32, {dims[0]}), static_cast<double>(i)));
  };
  for (int64_t i = 0; i < rows; ++i) {
    order.push_back(number(i));
    for (int64_t j = 0; j < columns; ++j) elements.push_back(m.element(i, j));
  }
  for (int64_t k = 0; k < least; ++k) {
    Expr best = magnitude(elements[row_of(k) + at(k)]), place = number(k);
    for (int64_t i = k + 1; exchanges && i < rows; ++i) {
      const Expr size = magnitude(elements[row_of(i) + at(k)]);
      // A NaN stays where it is: no other element is greater, and it is greater than none.
      const Expr is_greater = size > best;
      best = select(is_greater, size, best);
      place = select(is_greater, number(i), place);
    }
    pivots.push_back(place.value());
    for (int64_t i = k + 1; exchanges && i < rows; ++i) {
      const Expr is_other = place == static_cast<double>(i);
      const auto exchange = [&](Expr& upper, Expr& lower) {
        const Expr kept = upper;
        upper = select(is_other, lower, upper);
        lower = select(is_other, kept, lower);
      };
      exchange(order[at(k)], order[at(i)]);
      for (int64_t j = 0; j < columns; ++j) {
        exchange(elements[row_of(k) + at(j)], elements[row_of(i) + at(j)]);
      }
    }
    const Expr pivot = elements[row_of(k) + at(k)];
    for (int64_t i = k + 1; i < rows; ++i) {
      Expr& factor = elements[row_of(i) + at(k)];
      factor = select(pivot != 0.0, factor / pivot, factor);
      for (int64_t j = k + 1; j < columns; ++j) {
        Expr& element = elements[row_of(i) + at(j)];
        element = element - factor * elements[row_of(k) + at(j)];
      }
    }
  }
  std::vector<Value> parts, places_of;
  for (const Expr& each : elements) parts.push_back(each.value());
  for (const Expr& each : order) places_of.push_back(each.value());
  const auto joined = [&](std::vector<Value> vectors) {
    for (Value& each : vectors) each = b.reshape(each, {1, dims[0]});
    return b.transpose(b.concatenate(vectors, 0), {1, 0});
  };
  return {m.joined(parts), joined(std::move(pivots)), joined(std::move(places_of))};
}

}  // namespace

LuFactors lu_of(Builder& b, Value a, bool exchanges) {
  if (!b.ok()) return {};
  const Dims dims = a.type().dims();
  const int64_t rows = dims[1], columns = dims[2];
  if (is_many(a) && rows <= kUnrolledLu && columns <= kUnrolledLu) {
    return lu_by_elements(b, a, exchanges);
  }
  if (columns <= kLoopColumns) return LuBuilder(dims, exchanges).factor(b, a);
  // [A B; C D], where A and C are the columns of a first half.
  const int64_t half = columns > rows ? rows : half_of(columns, kPanel);
  const Range all = {0, rows}, first = {0, half}, second = {half, columns};
  const LuFactors left = lu_of(b, block(b, a, all, first), exchanges);
  Value right = block(b, a, all, second);
  if (exchanges) right = rows_at(b, right, left.order);
  const Value square = block(b, left.matrix, first, first);
  const Value upper = solve(b, square, block(b, right, first, {0, columns - half}), true, true);
  if (!b.ok()) return {};
  if (columns > rows) return {b.concatenate({left.matrix, upper}, 2), left.pivots, left.order};
  const Range below = {half, rows};
  Value side = block(b, left.matrix, below, first);
  const Value rest = block(b, right, below, {0, columns - half});
  const LuFactors corner = lu_of(b, b.sub(rest, product(b, side, upper)), exchanges);
  if (exchanges) side = rows_at(b, side, corner.order);
  if (!b.ok()) return {};
  const Value top = b.concatenate({square, upper}, 2);
  const Value bottom = b.concatenate({side, corner.matrix}, 2);
  const auto part = [&](Value x, int64_t begin, int64_t end) {
    return b.slice(x, {0, begin}, {dims[0], end});
  };
  const Value later = rows_at(b, part(left.order, half, rows), corner.order);
  const Expr pivots = Expr(b, corner.pivots) + static_cast<double>(half);
  return {b.concatenate({top, bottom}, 1), b.concatenate({left.pivots, pivots.value()}, 1),
          b.concatenate({part(left.order, 0, half), later}, 1)};
}

}  // namespace tenon::hlo::decomposition
