// cholesky and triangular_solve: column by column, batched, as loops over the matrix size.
#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {
namespace {

// f16 and narrower are computed in f32.
ElementType computed_type(ElementType type) {
  return is_float(type) && bit_width(type) < 32 ? ElementType::kF32 : type;
}

// [batch, rows, columns] of an array of matrices.
struct Matrices {
  Value value;
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 0;
};

Matrices flatten(Builder& b, Value x, ElementType type) {
  Matrices m;
  const Dims& dims = x.type().dims();
  for (size_t d = 0; d + 2 < dims.size(); ++d) m.batch *= dims[d];
  m.rows = dims[dims.size() - 2];
  m.columns = dims[dims.size() - 1];
  m.value = b.reshape(b.convert(x, type), {m.batch, m.rows, m.columns});
  return m;
}

Value conjugate(Builder& b, Value x) {
  if (!b.ok() || !is_complex(x.type().element_type())) return x;
  return b.make(OpCode::kComplex, {b.unary(OpCode::kReal, x), b.neg(b.unary(OpCode::kImag, x))});
}

// conj(x) of the transposed last two dimensions of [batch, n, m].
Value adjoint(Builder& b, Value x, bool conjugated) {
  const Value transposed = b.transpose(x, {0, 2, 1});
  return conjugated ? conjugate(b, transposed) : transposed;
}

// Where row >= column, or <= for the upper triangle; without the diagonal if `strict`.
Value triangle_mask(Builder& b, const Dims& dims, bool lower, bool strict) {
  const Value row = b.iota(ElementType::kS32, dims, 1);
  const Value column = b.iota(ElementType::kS32, dims, 2);
  return b.compare(strict ? ComparisonDirection::kGt : ComparisonDirection::kGe,
                   lower ? row : column, lower ? column : row);
}

// Whether the op has nothing to compute.
bool is_empty(const Instruction& op) { return op.result_type().shape().element_count() == 0; }

Value batched_dot(Builder& b, Value lhs, Value rhs, int64_t lhs_axis, int64_t rhs_axis) {
  DotDims dims;
  dims.lhs_batching = dims.rhs_batching = {0};
  dims.lhs_contracting = {lhs_axis};
  dims.rhs_contracting = {rhs_axis};
  return b.dot_general(lhs, rhs, dims, b.ok() ? lhs.type().element_type() : ElementType::kF32);
}

}  // namespace

// Column j of L: (A[:, j] - L[:, :j] conj(L[j, :j])) / its own j-th element's square root. Columns not
// yet computed are zero, so that whole rows may be multiplied.
Values cholesky(Builder& b, const Instruction& op) {
  if (is_empty(op)) return done(b, {op.operand(0)});
  const ElementType type = op.operand_type(0).element_type();
  const ElementType work = computed_type(type);
  const bool lower = op.flag(AttrKey::lower);
  const Matrices a = flatten(b, op.operand(0), work);
  if (!b.ok()) return done(b, {});
  const int64_t n = a.rows;
  const Dims dims = {a.batch, n, n};
  const Value source = lower ? a.value : adjoint(b, a.value, true);
  const Value start = b.splat(Shape(work, dims), 0);
  const std::vector<Value> state = b.while_loop(
      {b.constant(Literal::scalar_integer(ElementType::kS32, 0)), start, source},
      [&](Builder& inner, const std::vector<Value>& s) {
        return inner.compare(ComparisonDirection::kLt, s[0],
                             inner.constant(Literal::scalar_integer(ElementType::kS32, n)));
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const Value zero = inner.constant(Literal::scalar_integer(ElementType::kS32, 0));
        const Value column = inner.dynamic_slice(s[2], {zero, zero, s[0]}, {a.batch, n, 1});
        const Value row = inner.dynamic_slice(s[1], {zero, s[0], zero}, {a.batch, 1, n});
        const Value product = batched_dot(inner, s[1], conjugate(inner, row), 2, 2);
        const Value rest = inner.sub(column, product);
        Value pivot = inner.dynamic_slice(rest, {zero, s[0], zero}, {a.batch, 1, 1});
        if (is_complex(work) && inner.ok()) {
          // A Hermitian matrix has a real diagonal; what its imaginary part holds is not read.
          const Value real = inner.unary(OpCode::kReal, pivot);
          const Value root = inner.unary(OpCode::kSqrt, real);
          pivot = inner.make(OpCode::kComplex, {root, inner.splat_like(root, 0)});
        } else {
          pivot = inner.unary(OpCode::kSqrt, pivot);
        }
        const Value scaled = inner.div(rest, inner.broadcast_in_dim(pivot, {a.batch, n, 1}, {0, 1, 2}));
        const Value below = inner.compare(
            ComparisonDirection::kGt, inner.iota(ElementType::kS32, {a.batch, n, 1}, 1),
            inner.broadcast_scalar(s[0], {a.batch, n, 1}));
        const Value at = inner.compare(
            ComparisonDirection::kEq, inner.iota(ElementType::kS32, {a.batch, n, 1}, 1),
            inner.broadcast_scalar(s[0], {a.batch, n, 1}));
        const Value spread = inner.broadcast_in_dim(pivot, {a.batch, n, 1}, {0, 1, 2});
        const Value finished = inner.select(
            below, scaled, inner.select(at, spread, inner.splat(Shape(work, {a.batch, n, 1}), 0)));
        const Value one = inner.constant(Literal::scalar_integer(ElementType::kS32, 1));
        return {inner.add(s[0], one), inner.dynamic_update_slice(s[1], finished, {zero, zero, s[0]}),
                s[2]};
      });
  if (!b.ok()) return done(b, {});
  const Value factor = lower ? state[1] : adjoint(b, state[1], true);
  return done(b, {b.convert(b.reshape(factor, op.result_type().dims()), type)});
}

// Brought to L x = y with L lower triangular: transposing A turns upper into lower, reversing both its
// dimensions too; a system on the right is the transposed one on the left. Then row by row:
// x[i] = (y[i] - L[i, :] x) / L[i, i], rows of x not yet known being zero.
Values triangular_solve(Builder& b, const Instruction& op) {
  if (is_empty(op)) return done(b, {op.operand(1)});
  const ElementType type = op.operand_type(0).element_type();
  const ElementType work = computed_type(type);
  const auto transpose_a = op.enumeration<Transpose>(AttrKey::transpose_a);
  const bool left = op.flag(AttrKey::left_side);
  const bool unit = op.flag(AttrKey::unit_diagonal);
  bool lower = op.flag(AttrKey::lower);
  const Matrices a = flatten(b, op.operand(0), work);
  const Matrices y = flatten(b, op.operand(1), work);
  if (!b.ok()) return done(b, {});
  const int64_t n = a.rows;
  const Dims dims = {a.batch, n, n};

  // The named triangle alone is read, and a unit diagonal not at all.
  Value triangle = b.select(triangle_mask(b, dims, lower, unit), a.value,
                            b.splat(Shape(work, dims), 0));
  if (transpose_a == Transpose::kTranspose || transpose_a == Transpose::kAdjoint) {
    triangle = adjoint(b, triangle, transpose_a == Transpose::kAdjoint);
    lower = !lower;
  }
  Value rhs = y.value;
  if (!left) {
    triangle = b.transpose(triangle, {0, 2, 1});
    lower = !lower;
    rhs = b.transpose(rhs, {0, 2, 1});
  }
  const auto reversed = [&](Value x, I64s dimensions) {
    return b.make(OpCode::kReverse, {x}, {{AttrKey::dimensions, Attribute(std::move(dimensions))}});
  };
  if (!lower) {
    triangle = reversed(triangle, {1, 2});
    rhs = reversed(rhs, {1});
  }
  const int64_t columns = left ? y.columns : y.rows;
  const Dims x_dims = {a.batch, n, columns};
  const std::vector<Value> state = b.while_loop(
      {b.constant(Literal::scalar_integer(ElementType::kS32, 0)), b.splat(Shape(work, x_dims), 0),
       triangle, rhs},
      [&](Builder& inner, const std::vector<Value>& s) {
        return inner.compare(ComparisonDirection::kLt, s[0],
                             inner.constant(Literal::scalar_integer(ElementType::kS32, n)));
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const Value zero = inner.constant(Literal::scalar_integer(ElementType::kS32, 0));
        const Value row = inner.dynamic_slice(s[2], {zero, s[0], zero}, {a.batch, 1, n});
        const Value target = inner.dynamic_slice(s[3], {zero, s[0], zero}, {a.batch, 1, columns});
        Value solved = inner.sub(target, batched_dot(inner, row, s[1], 2, 1));
        if (!unit) {
          const Value pivot = inner.dynamic_slice(row, {zero, zero, s[0]}, {a.batch, 1, 1});
          solved = inner.div(solved, inner.broadcast_in_dim(pivot, {a.batch, 1, columns}, {0, 1, 2}));
        }
        const Value one = inner.constant(Literal::scalar_integer(ElementType::kS32, 1));
        return {inner.add(s[0], one), inner.dynamic_update_slice(s[1], solved, {zero, s[0], zero}),
                s[2], s[3]};
      });
  if (!b.ok()) return done(b, {});
  Value x = state[1];
  if (!lower) x = reversed(x, {1});
  if (!left) x = b.transpose(x, {0, 2, 1});
  return done(b, {b.convert(b.reshape(x, op.result_type().dims()), type)});
}

}  // namespace tenon::hlo::expand
