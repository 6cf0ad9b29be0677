// chlo.ragged_dot: a dot_general whose rows, or whose contracted elements, are divided into groups
// with sizes given at run time. A loop goes through the groups, and through each of them by blocks:
// a dot_general of a block keeps the elements that the group's mask selects. Where groups are few,
// or have sizes of their own for each batch, a block is all there is.
#include <algorithm>
#include <bit>
#include <functional>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/inference/infer.h"

namespace tenon::hlo::decomposition {
namespace {

constexpr int64_t kLeastBlock = 32, kMostBlock = 128;
constexpr int64_t kMostRank = 1024;  // Of lists of dimensions that are read.

bool is_array(const Type& type) {
  return type.is_tensor() && !type.is_quantized() && type.shape().is_static();
}

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
        groups_(op.operand_type(2).dims().back()),
        all_(op.operand_type(0).dims()[at(ragged_)]) {}

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

  // How many elements of the ragged dimension are multiplied at a time: about those of a group, or
  // all, if the blocks of all groups are not much less than all elements for each group.
  int64_t block_size() const {
    const auto of_group = static_cast<uint64_t>(std::max<int64_t>(all_ / groups_, 1));
    const auto even = static_cast<int64_t>(std::bit_ceil(of_group));
    const int64_t size = std::clamp(even, kLeastBlock, kMostBlock);
    const bool pays = all_ >= size && groups_ * all_ >= 2 * (all_ + groups_ * size);
    return outer_.empty() && pays ? size : all_;
  }

  // The elements [first, first + size) of the ragged dimension that lie in [start, limit): of an
  // array of `dims` along `axis`; `outer` are the dimensions along which start and limit vary.
  Value mask(Builder& b, const Dims& dims, int64_t axis, const I64s& outer, Value start,
             Value limit, Value first = {}) const {
    Value position = b.iota(ElementType::kS64, dims, axis);
    if (first) position = b.add(position, b.broadcast_scalar(first, dims));
    const Expr place(b, position);
    const Expr begin(b, b.broadcast_in_dim(start, dims, outer));
    const Expr end(b, b.broadcast_in_dim(limit, dims, outer));
    return ((place >= begin) & (place < end)).value();
  }

  // Calls step(builder, the first element of a block, the result so far) for blocks that have the
  // elements [start, limit). The last block of all begins earlier, so that it is whole.
  Value over_blocks(
      Builder& b, int64_t size, Value start, Value limit, Value result,
      const std::function<Value(Builder&, Value first, Value start, Value result)>& step) const {
    const Value end = b.binary(OpCode::kMinimum, limit, b.i64_constant(all_));
    const Value begin = b.binary(OpCode::kMaximum, start, b.i64_constant(0));
    return b.while_loop(
        {begin, result},
        [&](Builder& inner, const std::vector<Value>& s) {
          return inner.compare(ComparisonDirection::kLt, s[0], end);
        },
        [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
          const Value first = inner.binary(OpCode::kMinimum, s[0], inner.i64_constant(all_ - size));
          const Value next = step(inner, first, s[0], s[1]);
          return {inner.add(s[0], inner.i64_constant(size)), next};
        })[1];
  }

  // The elements from `first` on along `axis`.
  Value block(Builder& b, Value x, int64_t axis, Value first, int64_t size) const {
    Dims sizes = x.type().dims();
    sizes[at(axis)] = size;
    return b.dynamic_slice(x, block_starts(b, sizes.size(), axis, first), sizes);
  }
  std::vector<Value> block_starts(Builder& b, size_t rank, int64_t axis, Value first) const {
    std::vector<Value> starts = zero_starts(b, rank);
    starts[at(axis)] = first;
    return starts;
  }

  // Multiplies the rows of the group by its matrix of rhs.
  Value with_rows(Builder& b, Value result, Value group, Value start, Value limit) const {
    const Value rhs = op_.operand(1);
    const int64_t group_dim = numbers_.rhs_group[0];
    const Value slice = block(b, rhs, group_dim, group, 1);
    Dims sizes = slice.type().dims();
    sizes.erase(sizes.begin() + group_dim);
    const Value matrix = b.reshape(slice, sizes);
    DotDims dims = numbers_.dot;
    for (I64s* list : {&dims.rhs_batching, &dims.rhs_contracting}) {
      for (int64_t& d : *list) d -= d > group_dim ? 1 : 0;
    }
    const int64_t axis = result_dimension(numbers_.dot, ragged_);
    const int64_t size = block_size();
    if (size == all_) {
      const Value product = dot(b, op_.operand(0), matrix, dims, op_.result_type());
      I64s outer;
      for (const int64_t d : outer_) outer.push_back(result_dimension(numbers_.dot, d));
      const Value rows = mask(b, op_.result_type().dims(), axis, outer, start, limit);
      return b.select(rows, product, result);
    }
    const auto step = [&](Builder& inner, Value first, Value from, Value before) {
      const Value old = block(inner, before, axis, first, size);
      const Value product =
          dot(inner, block(inner, op_.operand(0), ragged_, first, size), matrix, dims, old.type());
      const Value rows = mask(inner, old.type().dims(), axis, {}, from, limit, first);
      return inner.dynamic_update_slice(before, inner.select(rows, product, old),
                                        block_starts(inner, old.type().dims().size(), axis, first));
    };
    return over_blocks(b, size, start, limit, result, step);
  }

  // The group's part of the sum; elements outside are set to zero in both operands, because they
  // may be infinite.
  Value with_part(Builder& b, Value result, Value group, Value start, Value limit) const {
    Dims dims = op_.result_type().dims();
    dims.erase(dims.begin());
    const int64_t rhs_axis = rhs_dimension(numbers_.dot, ragged_);
    const int64_t size = block_size();
    Value part;
    if (size == all_) {
      I64s rhs_outer;
      for (const int64_t d : outer_) rhs_outer.push_back(rhs_dimension(numbers_.dot, d));
      const auto masked = [&](Value x, int64_t axis, const I64s& outer) {
        return kept(b, x, mask(b, x.type().dims(), axis, outer, start, limit));
      };
      part = dot(b, masked(op_.operand(0), ragged_, outer_),
                 masked(op_.operand(1), rhs_axis, rhs_outer), numbers_.dot,
                 op_.result_type().with_dims(dims));
    } else {
      const ElementType type = op_.result_type().element_type();
      const Type sums = Type::tensor(computing_type(type), dims);  // rounded once
      const auto step = [&](Builder& inner, Value first, Value from, Value before) {
        const auto masked = [&](Value whole, int64_t axis) {
          const Value x = block(inner, whole, axis, first, size);
          return kept(inner, x, mask(inner, x.type().dims(), axis, {}, from, limit, first));
        };
        return inner.add(before, dot(inner, masked(op_.operand(0), ragged_),
                                     masked(op_.operand(1), rhs_axis), numbers_.dot, sums));
      };
      part = over_blocks(b, size, start, limit, b.splat(sums.shape(), 0), step);
      part = b.convert(part, type);
    }
    dims.insert(dims.begin(), 1);
    std::vector<Value> starts = zero_starts(b, dims.size());
    starts[0] = group;
    return b.dynamic_update_slice(result, b.reshape(part, dims), std::move(starts));
  }

  static Value kept(Builder& b, Value x, Value mask) {
    return b.select(mask, x, b.splat(Shape(x.type().element_type(), x.type().dims()), 0));
  }

  const Instruction& op_;
  const RaggedDotDims& numbers_;
  I64s outer_;
  int64_t ragged_;
  int64_t groups_;
  int64_t all_;  ///< Elements of the ragged dimension.
};

}  // namespace

std::unique_ptr<Instruction> ragged_dot_of(const Instruction& composite) {
  const auto* attributes = composite.attr<Dict>(AttrKey::composite_attributes);
  if (attributes == nullptr || composite.operand_count() != 3 || composite.result_count() != 1)
    return nullptr;
  std::vector<I64s> lists;
  for (const auto& [name, value] : *attributes) {
    const auto* list = value.get<ArrayAttr>();
    if (name != "ragged_dot_dimension_numbers" || list == nullptr) continue;
    for (const Attribute& each : *list) {
      const auto* dense = each.get<DenseAttr>();
      const bool is_list = dense != nullptr && is_integer(dense->values.element_type()) &&
                           dense->shape.element_count() <= kMostRank;
      if (!is_list) return nullptr;
      const Literal elements = dense->expanded();
      I64s& numbers = lists.emplace_back();
      for (int64_t i = 0; i < elements.element_count(); ++i) {
        numbers.push_back(elements.get_integer(i));
      }
    }
  }
  constexpr size_t kLists = 6;  // As #chlo.ragged_dot has them.
  if (lists.size() != kLists || !is_array(composite.result_type())) return nullptr;
  for (size_t i = 0; i < composite.operand_count(); ++i) {
    if (!is_array(composite.operand_type(i))) return nullptr;
  }
  const RaggedDotDims dims{{lists[0], lists[1], lists[2], lists[3]}, lists[4], lists[5]};
  auto op = std::make_unique<Instruction>(OpCode::kChloRaggedDot, composite.operands(),
                                          composite.result_types());
  op->mutable_attributes().set(AttrKey::ragged_dot_dimension_numbers, dims);
  op->set_location(composite.location());
  const auto inferred = infer::chlo_ragged_dot(*op);
  const bool fits = inferred && inferred->size() == 1 &&
                    inferred->front().dims() == composite.result_type().dims();
  return fits ? std::move(op) : nullptr;
}

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
