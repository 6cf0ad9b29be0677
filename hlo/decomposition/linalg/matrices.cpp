#include "hlo/decomposition/linalg/matrices.h"

#include <tuple>

namespace tenon::hlo::decomposition {

Value identity(Builder& b, ElementType type, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const Expr ones(b, b.splat(Shape(type, dims), 1));
  return select(places(b, dims, rank - 2) == places(b, dims, rank - 1), ones, 0.0).value();
}

Value transposed(Builder& b, Value x) {
  if (!b.ok() || !x) return {};
  I64s permutation = counting(x.type().rank());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return b.transpose(x, std::move(permutation));
}

Value adjoint_of(Builder& b, Value x) {
  if (!b.ok() || !x) return {};
  return transposed(b, conjugate(Expr(b, x)).value());
}

Value matrix_vector(Builder& b, Value matrix, Value vector) {
  if (!b.ok()) return {};
  const int64_t batch = vector.type().rank() - 1;
  return exact_dot(b, matrix, vector, {counting(batch), counting(batch), {batch + 1}, {batch}});
}

Value product(Builder& b, Value x, Value y, bool transposes_y) {
  if (!b.ok() || !x) return {};
  const int64_t batch = x.type().rank() - 2;
  return exact_dot(
      b, x, y, {counting(batch), counting(batch), {batch + 1}, {batch + (transposes_y ? 1 : 0)}});
}

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

int64_t half_of(int64_t size, int64_t block_size) {
  const int64_t blocks = (size + block_size - 1) / block_size;
  return (blocks + 1) / 2 * block_size;
}

int64_t batch_count(const Type& type) {
  return element_count(Dims(type.dims().begin(), type.dims().end() - 2));
}
bool is_many(Value matrices) { return batch_count(matrices.type()) >= kMany; }
bool is_unrolled(Value matrices) {
  return is_many(matrices) && matrices.type().dims().back() <= kUnrolled;
}
Value next(Builder& b, Value i) { return b.add(i, b.i64_constant(1)); }

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

}  // namespace tenon::hlo::decomposition
