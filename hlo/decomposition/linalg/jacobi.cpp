#include "hlo/decomposition/linalg/jacobi.h"

#include <limits>
#include <utility>

namespace tenon::hlo::decomposition {

Rotation rotation_of(const Expr& p, const Expr& q, const Expr& corner) {
  const Expr size = abs(corner);
  const Expr is_zero = size == 0.0;
  const Expr divisor = select(is_zero, 1.0, size);
  // The smaller one of two tangents; for a quotient whose square overflows it is 0.
  const Expr ratio = (q - p) / (divisor * 2.0);
  const Expr root = abs(ratio) + sqrt(ratio * ratio + 1.0);
  const Expr tangent = select(is_zero, 0.0, select(ratio >= 0.0, 1.0 / root, -1.0 / root));
  const Expr c = 1.0 / sqrt(tangent * tangent + 1.0);
  // The direction of the corner alone: tangent / divisor overflows for the smallest corners.
  const Expr sine = tangent * c, shift = tangent * size;
  if (!is_complex(corner.type())) return {c, sine * (corner / divisor), shift};
  return {c, complex(sine * (real(corner) / divisor), sine * (imag(corner) / divisor)), shift};
}

RowPair row_pair(const Expr& alpha, const Expr& beta, const Expr& corner, const Expr& floor) {
  const Expr counts = (alpha > floor) & (beta > floor);
  const Expr used = select(counts, corner, 0.0);
  const Expr lengths = sqrt(alpha) * sqrt(beta);
  return {rotation_of(alpha, beta, used), abs(used) / select(counts, lengths, 1.0)};
}

double epsilon_of(ElementType type) {
  return type == ElementType::kF64 ? std::numeric_limits<double>::epsilon()
                                   : std::numeric_limits<float>::epsilon();
}

Expr Rounds::part(Value x, int64_t dimension, int64_t begin, int64_t end) const {
  if (!b_.ok()) return {b_, {}};
  I64s from(at(x.type().rank()), 0);
  I64s to = x.type().dims();
  from[at(dimension)] = begin;
  to[at(dimension)] = end;
  return {b_, b_.slice(x, std::move(from), std::move(to))};
}

Value Rounds::rotated(Value x, const Expr& c, const Expr& s, int64_t dimension) const {
  const Expr p = first(x, dimension), q = second(x, dimension);
  const Value upper = (c * p - s * q).value(), lower = (conjugate(s) * p + c * q).value();
  // Row 0 stays; the others move by one place in a circle of both halves.
  std::vector<Value> parts;
  const auto add = [&](Value from, int64_t begin, int64_t end) {
    if (begin < end) parts.push_back(part(from, dimension, begin, end).value());
  };
  const bool moves = half_ > 1;
  add(upper, 0, 1);
  if (moves) {
    add(lower, 0, 1);
    add(upper, 1, half_ - 1);
  }
  add(lower, moves ? 1 : 0, half_);
  if (moves) add(upper, half_ - 1, half_);
  return b_.concatenate(parts, dimension);
}

Value sorted_places(Builder& b, Value keys, bool descends) {
  if (!b.ok()) return {};
  const ElementType type = keys.type().element_type();
  auto region = std::make_unique<Computation>();
  std::vector<Value> parameters;
  for (const ElementType each : {type, type, ElementType::kS32, ElementType::kS32}) {
    parameters.push_back(region->add_parameter(Type::tensor(each, {})));
  }
  Builder inner(*region);
  const auto direction = descends ? ComparisonDirection::kGt : ComparisonDirection::kLt;
  b.fail(inner.finish(
      {inner.compare(direction, parameters[0], parameters[1], ComparisonType::kTotalOrder)}));
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(std::move(region));
  Instruction* const sorted =
      b.create(OpCode::kSort, {keys, b.iota(ElementType::kS32, keys.type().dims(), 1)},
               {{AttrKey::dimension, int64_t{1}}, {AttrKey::is_stable, Attribute(true)}}, {},
               std::move(regions));
  return sorted == nullptr ? Value{} : sorted->result(1);
}

Value rows_at(Builder& b, Value x, Value places) {
  if (!b.ok()) return {};
  GatherDims dims;
  I64s sizes = x.type().dims();
  sizes[0] = sizes[1] = 1;
  if (sizes.size() > 2) dims.offset_dims = {2};
  dims.collapsed_slice_dims = {1};
  dims.operand_batching_dims = {0};
  dims.start_indices_batching_dims = {0};
  dims.start_index_map = {1};
  dims.index_vector_dim = 2;
  return b.make(OpCode::kGather, {x, places},
                {{AttrKey::dimension_numbers, dims}, {AttrKey::slice_sizes, sizes}});
}

}  // namespace tenon::hlo::decomposition
