// Triangular systems of batched matrices: loops over rows or blocks of rows, halves whose known
// part is a product of matrices, and vectors over the batch, as for Cholesky factors.
#include <utility>

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {
namespace {

// The size up to which systems are loops over blocks of rows, or over rows of few columns.
constexpr int64_t kLoopOfBlocks = 128;
// Columns below which products of matrices gain nothing.
constexpr int64_t kNarrow = 16;
// Larger systems end in loops over blocks, which take less code.
constexpr int64_t kFewBlocks = 16;

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

}  // namespace

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
