// chlo.ragged_dot: a dot_general whose rows, or whose contracted elements, are divided into groups
// with sizes given at run time. A loop computes one dot_general for each group and keeps the
// elements that the group's mask selects.
#include <algorithm>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// Dimensions of lhs for which group_sizes has separate lists, in its order; empty if it has one
// list for all.
I64s outer_dimensions(const Instruction& op, const RaggedDotDims& numbers) {
  if (op.operand_type(2).rank() == 1) return {};
  const int64_t ragged = numbers.lhs_ragged[0];
  I64s outer = numbers.dot.lhs_batching;
  if (contains(numbers.dot.lhs_contracting, ragged)) {
    for (const int64_t d : numbers.dot.lhs_contracting) {
      if (d == ragged) break;
      outer.push_back(d);
    }
    return outer;
  }
  for (int64_t d = 0; d < ragged; ++d) {
    if (!contains(numbers.dot.lhs_batching, d) && !contains(numbers.dot.lhs_contracting, d)) {
      outer.push_back(d);
    }
  }
  return outer;
}

int64_t index_of(const I64s& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) - list.begin();
}

// The dimension of the result for dimension `d` of lhs, which must not be contracting.
int64_t result_dimension(const DotDims& dot, int64_t d) {
  if (contains(dot.lhs_batching, d)) return index_of(dot.lhs_batching, d);
  auto place = static_cast<int64_t>(dot.lhs_batching.size());
  for (int64_t other = 0; other < d; ++other) {
    place += contains(dot.lhs_batching, other) || contains(dot.lhs_contracting, other) ? 0 : 1;
  }
  return place;
}

// The dimension of rhs that corresponds to batching or contracting dimension `d` of lhs.
int64_t rhs_dimension(const DotDims& dot, int64_t d) {
  if (contains(dot.lhs_batching, d)) return dot.rhs_batching[at(index_of(dot.lhs_batching, d))];
  return dot.rhs_contracting[at(index_of(dot.lhs_contracting, d))];
}

class RaggedDot {
 public:
  explicit RaggedDot(const Instruction& op)
      : op_(op),
        numbers_(*op.attr<RaggedDotDims>(AttrKey::ragged_dot_dimension_numbers)),
        outer_(outer_dimensions(op, numbers_)),
        ragged_(numbers_.lhs_ragged[0]),
        groups_(op.operand_type(2).dims().back()) {}

  bool ragged_is_batching() const { return contains(numbers_.dot.lhs_batching, ragged_); }
  bool ragged_is_contracting() const { return contains(numbers_.dot.lhs_contracting, ragged_); }

  Value dot(Builder& b, Value lhs, Value rhs, const DotDims& dims, const Type& type) const {
    auto dot = std::make_unique<Instruction>(OpCode::kDotGeneral, std::vector<Value>{lhs, rhs},
                                             std::vector<Type>{type});
    dot->mutable_attributes().set(AttrKey::dot_dimension_numbers, dims);
    if (const Attribute* precision = op_.attribute(AttrKey::precision_config)) {
      dot->mutable_attributes().set(AttrKey::precision_config, *precision);
    }
    Instruction* made = b.create(std::move(dot));
    return made ? made->result() : Value{};
  }
  /// Groups have no effect: computed as dot_general.
  Value whole(Builder& b) const {
    return dot(b, op_.operand(0), op_.operand(1), numbers_.dot, op_.result_type());
  }

  /// Loops over the groups; the state is the group's index, its start, and the result so far.
  Value loop(Builder& b) const {
    Dims starts(op_.operand_type(2).dims().begin(), op_.operand_type(2).dims().end() - 1);
    const std::vector<Value> state = b.while_loop(
        {b.i64_constant(0), b.splat(Shape(ElementType::kS64, starts), 0),
         b.splat(op_.result_type().shape(), 0)},
        [this](Builder& inner, const std::vector<Value>& s) {
          return inner.compare(ComparisonDirection::kLt, s[0], inner.i64_constant(groups_));
        },
        [this](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
          const Value limit = inner.add(s[1], group_size(inner, s[0]));
          const Value result = ragged_is_contracting() ? with_part(inner, s[2], s[0], s[1], limit)
                                                       : with_rows(inner, s[2], s[0], s[1], limit);
          return {inner.add(s[0], inner.i64_constant(1)), limit, result};
        });
    return state[2];
  }

 private:
  Value group_size(Builder& b, Value group) const {
    const Value list = op_.operand(2);
    Dims sizes = list.type().dims();
    sizes.back() = 1;
    std::vector<Value> starts = zero_starts(b, sizes.size() - 1);
    starts.push_back(group);
    const Value size = b.dynamic_slice(list, std::move(starts), sizes);
    sizes.pop_back();
    return b.convert(b.reshape(size, sizes), ElementType::kS64);
  }

  // Selects the positions of an array of `dims` that lie in [start, limit) along `axis`; `outer`
  // are the dimensions along which start and limit vary.
  Value mask(Builder& b, const Dims& dims, int64_t axis, const I64s& outer, Value start,
             Value limit) const {
    const Expr position(b, b.iota(ElementType::kS64, dims, axis));
    const Expr first(b, b.broadcast_in_dim(start, dims, outer));
    const Expr end(b, b.broadcast_in_dim(limit, dims, outer));
    return ((position >= first) & (position < end)).value();
  }

  // Multiplies the rows of the group by its matrix of rhs.
  Value with_rows(Builder& b, Value result, Value group, Value start, Value limit) const {
    const Value rhs = op_.operand(1);
    const int64_t group_dim = numbers_.rhs_group[0];
    const auto rank = static_cast<size_t>(rhs.type().rank());
    Dims sizes = rhs.type().dims();
    sizes[at(group_dim)] = 1;
    std::vector<Value> starts = zero_starts(b, rank);
    starts[at(group_dim)] = group;
    const Value slice = b.dynamic_slice(rhs, std::move(starts), sizes);
    sizes.erase(sizes.begin() + group_dim);
    DotDims dims = numbers_.dot;
    for (I64s* list : {&dims.rhs_batching, &dims.rhs_contracting}) {
      for (int64_t& d : *list) d -= d > group_dim ? 1 : 0;
    }
    const Value product = dot(b, op_.operand(0), b.reshape(slice, sizes), dims, op_.result_type());
    I64s outer;
    for (const int64_t d : outer_) outer.push_back(result_dimension(numbers_.dot, d));
    const Value rows = mask(b, op_.result_type().dims(), result_dimension(numbers_.dot, ragged_),
                            outer, start, limit);
    return b.select(rows, product, result);
  }

  // The group's part of the sum; elements outside are set to zero in both operands, because they
  // may be infinite.
  Value with_part(Builder& b, Value result, Value group, Value start, Value limit) const {
    I64s rhs_outer;
    for (const int64_t d : outer_) rhs_outer.push_back(rhs_dimension(numbers_.dot, d));
    const auto masked = [&](Value x, int64_t axis, const I64s& outer) {
      const Value zero = b.splat(Shape(x.type().element_type(), x.type().dims()), 0);
      return b.select(mask(b, x.type().dims(), axis, outer, start, limit), x, zero);
    };
    Dims dims = op_.result_type().dims();
    dims.erase(dims.begin());
    const Value part = dot(b, masked(op_.operand(0), ragged_, outer_),
                           masked(op_.operand(1), rhs_dimension(numbers_.dot, ragged_), rhs_outer),
                           numbers_.dot, op_.result_type().with_dims(dims));
    dims.insert(dims.begin(), 1);
    std::vector<Value> starts = zero_starts(b, dims.size());
    starts[0] = group;
    return b.dynamic_update_slice(result, b.reshape(part, dims), std::move(starts));
  }

  const Instruction& op_;
  const RaggedDotDims& numbers_;
  I64s outer_;
  int64_t ragged_;
  int64_t groups_;
};

}  // namespace

Values chlo_ragged_dot(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const RaggedDot ragged(op);
  if (ragged.ragged_is_batching()) return finished(b, {ragged.whole(b)});
  // Without groups there is nothing to slice, and nothing is kept.
  if (op.operand_type(2).dims().back() == 0 || op.result_type().shape().element_count() == 0) {
    return finished(b, {b.splat(op.result_type().shape(), 0)});
  }
  return finished(b, {ragged.loop(b)});
}

}  // namespace tenon::hlo::decomposition
