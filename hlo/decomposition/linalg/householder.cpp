// Columns are eliminated one by one within a panel, whose reflections are then applied to the rest
// of the matrix at once: I - V T V^H (Schreiber and Van Loan, 1989). Panels are turns of a loop
// that works on all columns of up to kColumnsOfLoop; larger matrices are divided in halves.
#include "hlo/decomposition/linalg/householder.h"

#include <utility>

#include "hlo/decomposition/linalg/small_matrices.h"

namespace tenon::hlo::decomposition {
namespace {

// Columns of a panel, and of a matrix whose panels are turns of a loop.
constexpr int64_t kPanelColumns = 16;
constexpr int64_t kColumnsOfLoop = 256;
// So few reflections are applied one by one.
constexpr int64_t kFewReflections = 8;

struct Sizes {
  int64_t batch = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};
Sizes sizes_of(Value x) {
  const Dims& dims = x.type().dims();
  return {dims[0], dims[1], dims[2]};
}

// Each row of [batch, size], reduced from 0 on.
Expr along_rows(const Expr& x, OpCode combiner) {
  Builder& b = x.builder();
  return {b, b.reduce(combiner, x.value(), b.scalar(x.type(), 0), {1})};
}

struct Reflection {
  Expr v;  // [batch, rows]
  Expr tau;
  Expr beta;
};

// The reflection for columns [batch, rows] from row j on.
Reflection reflection_of(Builder& b, const Expr& column, Value j, const Dims& dims) {
  const ElementType type = column.type();
  const Expr row = places(b, dims, 1), here = filled(b, j, dims);
  const Expr alpha(
      b,
      b.reshape(b.dynamic_slice(column.value(), {b.i64_constant(0), j}, {dims[0], 1}), {dims[0]}));
  const Expr from_here = select(row >= here, greatest_part(column), 0.0);
  const Expr largest = along_rows(from_here, OpCode::kMaximum);
  const Expr scale = select(largest == 0.0, 1.0, largest);
  const Expr below = select(row > here, column, 0.0);
  const Expr scaled = below / as_type(spread(scale, dims, {0}), type);
  const Expr under = along_rows(squared_size(scaled), OpCode::kAdd);
  const ReflectionNumbers numbers = reflection_numbers(alpha, scale, under);
  const Expr v = select(row == here, 1.0, scaled * spread(numbers.factor, dims, {0}));
  return {v, numbers.tau, numbers.beta};
}

// The columns of a panel [batch, rows, width] one by one, whose first diagonal element is in row
// `start`.
Reflections factor_panel(Builder& b, Value panel, Value start, const Sizes& sizes,
                         ElementType type) {
  const Dims dims = {sizes.batch, sizes.rows, sizes.columns}, tall = {sizes.batch, sizes.rows};
  const auto step = [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
    const Value zero = inner.i64_constant(0), j = s[0];
    const Value now = s[1], diagonal = inner.add(s[3], j);
    const Expr column(
        inner,
        inner.reshape(inner.dynamic_slice(now, {zero, zero, j}, {tall[0], tall[1], 1}), tall));
    const Reflection h = reflection_of(inner, column, diagonal, tall);
    if (!inner.ok()) return {};
    const Expr products(inner, exact_dot(inner, conjugate(h.v).value(), now, {{0}, {0}, {1}, {1}}));
    const Expr row = places(inner, tall, 1), here = filled(inner, diagonal, tall);
    const Expr beta = spread(as_type(h.beta, type), tall, {0});
    const Expr own = select(row > here, h.v, select(row == here, beta, column));
    const Expr scaled = h.v * spread(conjugate(h.tau), tall, {0});
    const Expr rest =
        Expr(inner, now) - spread(scaled, dims, {0, 1}) * spread(products, dims, {0, 2});
    const Expr place = places(inner, dims, 2), current = filled(inner, j, dims);
    const Expr changed =
        select(place > current, rest,
               select(place == current, spread(own, dims, {0, 1}), Expr(inner, now)));
    const Value tau = inner.reshape(h.tau.value(), {sizes.batch, 1});
    return {next(inner, j), changed.value(), inner.dynamic_update_slice(s[2], tau, {zero, j}),
            s[3]};
  };
  const Value taus = b.splat(Shape(type, {sizes.batch, sizes.columns}), 0);
  const std::vector<Value> state = count_loop(b, sizes.columns, {panel, taus, start}, step);
  return {state[1], state[2]};
}

// The vectors of a panel's reflections: 0 above the diagonal, 1 on it.
Value vectors_of(Builder& b, Value panel, Value start, const Sizes& sizes) {
  const Dims dims = {sizes.batch, sizes.rows, sizes.columns};
  const Expr below = places(b, dims, 1) - filled(b, start, dims), column = places(b, dims, 2);
  return select(below > column, Expr(b, panel),
                select(below == column, Expr(b, panel).constant(1), 0.0))
      .value();
}

// T of I - V T V^H, the product of reflections: (I + D U)^-1 D, where D has the factors and U is
// V^H V above its diagonal. A factor of 0 gives a row and column of zeros.
Value joint_factor(Builder& b, Value v, Value taus, int64_t batch, int64_t width) {
  const Dims dims = {batch, width, width};
  const Expr inner(b, exact_dot(b, conjugate(Expr(b, v)).value(), v, {{0}, {0}, {1}, {1}}));
  const Expr row = places(b, dims, 1), column = places(b, dims, 2);
  const Expr tau = spread(Expr(b, taus), dims, {0, 1});
  const Expr upper = select(row < column, tau * inner, 0.0);
  const Expr diagonal = select(row == column, tau, 0.0);
  return solve(b, upper.value(), diagonal.value(), false, true);
}

// x - V T V^H x, or with T's adjoint.
Value apply_panel(Builder& b, Value v, Value t, Value x, bool adjoint) {
  if (!b.ok()) return {};
  const Value products = exact_dot(b, conjugate(Expr(b, v)).value(), x, {{0}, {0}, {1}, {1}});
  const Value joined = product(b, adjoint ? adjoint_of(b, t) : t, products);
  return b.sub(x, product(b, v, joined));
}

// `width` columns of a from column `start` on, and what they change behind them.
Reflections eliminate(Builder& b, Value a, Value taus, Value start, int64_t width,
                      const Sizes& sizes, ElementType type) {
  const Value zero = b.i64_constant(0);
  const Sizes part = {sizes.batch, sizes.rows, width};
  const Value columns = b.dynamic_slice(a, {zero, zero, start}, {part.batch, part.rows, width});
  const Reflections panel = factor_panel(b, columns, start, part, type);
  if (width < sizes.columns) {
    const Value v = vectors_of(b, panel.matrix, start, part);
    const Value t = joint_factor(b, v, panel.taus, sizes.batch, width);
    const Dims dims = {sizes.batch, sizes.rows, sizes.columns};
    const Expr behind = filled(b, b.add(start, b.i64_constant(width)), dims);
    const Expr rest(b, apply_panel(b, v, t, a, true));
    a = select(places(b, dims, 2) >= behind, rest, Expr(b, a)).value();
  }
  return {b.dynamic_update_slice(a, panel.matrix, {zero, zero, start}),
          b.dynamic_update_slice(taus, panel.taus, {zero, start})};
}

Value reflected_one_by_one(Builder& b, const Reflections& q, Value x, bool adjoint) {
  const Sizes sizes = sizes_of(q.matrix);
  const int64_t count = q.taus.type().dims()[1];
  const Dims tall = {sizes.batch, sizes.rows}, dims = x.type().dims();
  const auto step = [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
    const Value zero = inner.i64_constant(0);
    const Value j = adjoint ? s[0] : inner.sub(inner.i64_constant(count - 1), s[0]);
    const Value part = inner.dynamic_slice(q.matrix, {zero, zero, j}, {tall[0], tall[1], 1});
    const Expr column(inner, inner.reshape(part, tall));
    const Expr row = places(inner, tall, 1), here = filled(inner, j, tall);
    const Expr v = select(row > here, column, select(row == here, column.constant(1), 0.0));
    const Value factor = inner.dynamic_slice(q.taus, {zero, j}, {tall[0], 1});
    const Expr tau(inner, inner.reshape(factor, {tall[0]}));
    const Expr products(inner, exact_dot(inner, conjugate(v).value(), s[1], {{0}, {0}, {1}, {1}}));
    const Expr scaled = v * spread(adjoint ? conjugate(tau) : tau, tall, {0});
    const Expr change = spread(scaled, dims, {0, 1}) * spread(products, dims, {0, 2});
    return {next(inner, s[0]), (Expr(inner, s[1]) - change).value()};
  };
  return count_loop(b, count, {x}, step)[1];
}

// Q R of matrices with as many rows as columns at least, and kColumnsOfLoop columns at most.
Reflections factor_by_panels(Builder& b, Value a) {
  const Sizes sizes = sizes_of(a);
  const ElementType type = a.type().element_type();
  const int64_t whole = (sizes.columns - 1) / kPanelColumns;  // At least one column is left.
  Reflections result = {a, b.splat(Shape(type, {sizes.batch, sizes.columns}), 0)};
  if (whole > 0) {
    const std::vector<Value> state = count_loop(
        b, whole, {result.matrix, result.taus},
        [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
          const Value start = inner.mul(s[0], inner.i64_constant(kPanelColumns));
          const Reflections now = eliminate(inner, s[1], s[2], start, kPanelColumns, sizes, type);
          return {next(inner, s[0]), now.matrix, now.taus};
        });
    result = {state[1], state[2]};
  }
  const int64_t done = whole * kPanelColumns;
  return eliminate(b, result.matrix, result.taus, b.i64_constant(done), sizes.columns - done, sizes,
                   type);
}

}  // namespace

Expr squared_size(const Expr& x) {
  if (!is_complex(x.type())) return x * x;
  return real(x) * real(x) + imag(x) * imag(x);
}

Expr greatest_part(const Expr& x) {
  return is_complex(x.type()) ? max(abs(real(x)), abs(imag(x))) : abs(x);
}

ReflectionNumbers reflection_numbers(const Expr& alpha, const Expr& scale, const Expr& under) {
  const bool is_real = !is_complex(alpha.type());
  // Everything but beta is computed from scaled numbers, since beta may have few digits.
  const Expr top = alpha / as_type(scale, alpha.type()), re = real_part(top);
  const Expr norm = sqrt(under + squared_size(top));
  Expr nothing = under == 0.0;
  if (!is_real) nothing = nothing & (imag(top) == 0.0);
  const Expr scaled = select(re >= 0.0, -norm, norm);
  const Expr beta = select(nothing, real_part(alpha), scaled * scale);
  const Expr divisor = select(nothing, 1.0, scaled);
  const Expr tau = select(nothing, 0.0, (scaled - re) / divisor);
  const Expr over = re - scaled;  // (alpha - beta) / scale.
  if (is_real) return {tau, beta, 1.0 / select(nothing, 1.0, over)};
  const Expr side = imag(top), length = over * over + side * side;
  const Expr safe = select(nothing, 1.0, length);
  return {complex(tau, select(nothing, 0.0, -imag(top) / divisor)), beta,
          complex(over / safe, -side / safe)};
}

Value reflected(Builder& b, const Reflections& q, Value x, bool adjoint) {
  if (!b.ok()) return {};
  const Sizes sizes = sizes_of(q.matrix);
  const int64_t count = q.taus.type().dims()[1];
  if (is_small(q.matrix) && is_small(x)) return small_reflected(b, q, x, adjoint);
  if (count <= kFewReflections) return reflected_one_by_one(b, q, x, adjoint);
  const auto apply = [&](Builder& inner, Value start, int64_t width, Value to) {
    const Value zero = inner.i64_constant(0);
    const Sizes part = {sizes.batch, sizes.rows, width};
    const Value panel =
        inner.dynamic_slice(q.matrix, {zero, zero, start}, {part.batch, part.rows, width});
    const Value taus = inner.dynamic_slice(q.taus, {zero, start}, {part.batch, width});
    const Value v = vectors_of(inner, panel, start, part);
    return apply_panel(inner, v, joint_factor(inner, v, taus, part.batch, width), to, adjoint);
  };
  const int64_t whole = count / kPanelColumns, done = whole * kPanelColumns;
  const auto apply_rest = [&](Value to) {
    return done == count ? to : apply(b, b.i64_constant(done), count - done, to);
  };
  if (!adjoint) x = apply_rest(x);
  if (whole == 1) x = apply(b, b.i64_constant(0), kPanelColumns, x);
  if (whole > 1) {
    x = count_loop(b, whole, {x},
                   [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
                     const Value last = inner.i64_constant(whole - 1);
                     const Value panel = adjoint ? s[0] : inner.sub(last, s[0]);
                     const Value start = inner.mul(panel, inner.i64_constant(kPanelColumns));
                     return {next(inner, s[0]), apply(inner, start, kPanelColumns, s[1])};
                   })[1];
  }
  return adjoint ? apply_rest(x) : x;
}

Reflections qr_of(Builder& b, Value a) {
  if (!b.ok()) return {};
  const Sizes sizes = sizes_of(a);
  const int64_t least = std::min(sizes.rows, sizes.columns);
  if (is_small(a)) return small_qr(b, a);
  const bool is_wide = sizes.columns > sizes.rows;
  if (!is_wide && sizes.columns <= kColumnsOfLoop) return factor_by_panels(b, a);
  const int64_t half = is_wide ? least : half_of(least, kPanelColumns);
  const Range all = {0, sizes.rows}, first = {0, half}, second = {half, sizes.columns};
  const Reflections left = qr_of(b, block(b, a, all, first));
  const Value right = reflected(b, left, block(b, a, all, second), true);
  if (!b.ok()) return {};
  if (is_wide) return {b.concatenate({left.matrix, right}, 2), left.taus};
  const Range rest = {0, sizes.columns - half};
  const Reflections bottom = qr_of(b, block(b, right, {half, sizes.rows}, rest));
  const Value column = b.concatenate({block(b, right, first, rest), bottom.matrix}, 1);
  return {b.concatenate({left.matrix, column}, 2), b.concatenate({left.taus, bottom.taus}, 1)};
}

}  // namespace tenon::hlo::decomposition
