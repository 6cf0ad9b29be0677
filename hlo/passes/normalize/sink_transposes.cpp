// Transposes that a pass on layouts put behind an op move on, through the ops that read it, until
// they meet one that undoes them, a convolution, whose dimension numbers take them up, or an op
// that needs the order: the arrays between convolutions keep one layout.
#include <algorithm>

#include "hlo/ir/region.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/normalize/layouts.h"

namespace tenon::hlo {
namespace {

// An op with an operand that is a transpose, as one on what is transposed: if the operand is
// transpose(x, order), its dimension i is dimension order[i] of x.
class Sinking {
 public:
  Sinking(Instruction& op, TransposeSet& transposes) : op_(op), transposes_(transposes) {}

  bool run() {
    if (op_.code() == OpCode::kConvolution) return relabel_convolution();
    const Instruction* const first = transpose_of_operand();
    if (first == nullptr) return false;
    order_ = first->i64s(AttrKey::permutation);
    switch (op_.code()) {
      case OpCode::kReduceWindow:
        return keeps_results(op_.i64s(AttrKey::window_dimensions)) &&
               sink({AttrKey::window_dimensions, AttrKey::window_strides, AttrKey::base_dilations,
                     AttrKey::window_dilations},
                    AttrKey::padding, op_.operand_count() / 2);
      case OpCode::kPad:
        return sink(
            {AttrKey::edge_padding_low, AttrKey::edge_padding_high, AttrKey::interior_padding}, {},
            1);
      case OpCode::kSlice:
        return sink({AttrKey::start_indices, AttrKey::limit_indices, AttrKey::strides}, {}, 1);
      case OpCode::kConcatenate:
        return sink_concatenate();
      case OpCode::kReduce:
        return sink_reduce();
      default:
        return is_elementwise() && sink({}, {}, op_.operand_count());
    }
  }

 private:
  const Instruction* transpose(Value value) const {
    // One outside of a loop would be done in each iteration.
    const bool is_ours = transposes_.contains(value.def) && value.def->parent() == op_.parent();
    return is_ours ? value.def : nullptr;
  }
  const Instruction* transpose_of_operand() const {
    for (const Value operand : op_.operands()) {
      if (const Instruction* const found = transpose(operand)) return found;
    }
    return nullptr;
  }

  bool is_elementwise() const {
    const auto dims = [](const Type& type) { return type.is_tensor() ? type.dims() : Dims{}; };
    const Dims& all = transpose_of_operand()->result_type().dims();
    return op_.info().fusion == FusionKind::kElementwise && op_.region_count() == 0 &&
           std::ranges::all_of(op_.result_types(),
                               [&](const Type& type) { return dims(type) == all; });
  }

  // Whether the operand costs nothing in the other order: a transpose as the first one, a scalar, a
  // constant, or a broadcast.
  bool is_free(Value value) const {
    if (const Instruction* const found = transpose(value))
      return found->i64s(AttrKey::permutation) == order_;
    if (value.type().rank() == 0 || constant_of(value) != nullptr) return true;
    return value.def != nullptr && value.def->code() == OpCode::kBroadcastInDim;
  }
  bool are_free(size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (!is_free(op_.operand(i))) return false;
    }
    return std::ranges::all_of(op_.result_types(), [](const Type& type) {
      return type.is_tensor() && !type.is_quantized() && type.shape().is_static();
    });
  }

  Value in_other_order(Builder& b, Value value) const {
    if (const Instruction* const found = transpose(value)) return found->operand(0);
    if (value.type().rank() == 0) return value;
    const I64s inverse = inverse_order(order_);
    if (constant_of(value) != nullptr) return transposed(b, value, inverse);
    I64s dimensions;
    for (const int64_t d : value.def->i64s(AttrKey::broadcast_dimensions))
      dimensions.push_back(order_[static_cast<size_t>(d)]);
    return b.broadcast_in_dim(value.def->operand(0), in_order(value.type().dims(), inverse),
                              std::move(dimensions));
  }
  void set_operands(size_t count) {
    Builder before(*op_.parent(), &op_);
    before.set_location(op_.location());
    for (size_t i = 0; i < count; ++i) op_.set_operand(i, in_other_order(before, op_.operand(i)));
  }

  // Whether elements may be combined in the other order of dimensions: those along which there are
  // several, by `extents`, stay in order, or the region is an op that commutes.
  bool keeps_results(const I64s& extents) const {
    const Instruction* const inner = op_of_two_parameters(op_.region(0));
    if (inner != nullptr && inner->info().commutative) return true;
    int64_t last = -1;
    for (size_t d = 0; d < order_.size(); ++d) {
      if (extents[d] == 1) continue;
      if (order_[d] < last) return false;
      last = order_[d];
    }
    return true;
  }

  // The results get other dimensions, and transposes by `order` behind them.
  void set_results(const Dims& dims, const I64s& order) {
    Builder after(*op_.parent(), op_.next());
    after.set_location(op_.location());
    const std::vector<Use> uses = op_.uses();
    for (uint32_t r = 0; r < op_.result_count(); ++r) {
      op_.set_result_type(r, Type::tensor(op_.result_types()[r].element_type(), dims));
      const Value back = transposed(after, op_.result(r), order);
      if (back == op_.result(r)) continue;
      transposes_.insert(back.def);
      for (const Use& use : uses) {
        if (use.user->operand(use.operand) == op_.result(r))
          use.user->set_operand(use.operand, back);
      }
    }
  }

  // `count` operands are arrays of the same rank; `lists` have an element for each dimension.
  bool sink(std::initializer_list<AttrKey> lists, std::optional<AttrKey> rows, size_t count) {
    if (!are_free(count)) return false;
    const I64s inverse = inverse_order(order_);
    set_operands(count);
    for (const AttrKey key : lists) {
      if (const auto* values = op_.attr<I64s>(key))
        op_.mutable_attributes().set(key, in_order(I64s(*values), inverse));
    }
    if (const auto* matrix = rows ? op_.attr<I64Matrix>(*rows) : nullptr)
      op_.mutable_attributes().set(*rows, in_order(*matrix, inverse));
    set_results(in_order(op_.result_type().dims(), inverse), order_);
    return true;
  }

  bool sink_concatenate() {
    const int64_t along = op_.integer(AttrKey::dimension);
    if (!sink({}, {}, op_.operand_count())) return false;
    op_.mutable_attributes().set(AttrKey::dimension, order_[static_cast<size_t>(along)]);
    return true;
  }

  bool sink_reduce() {
    const size_t arrays = op_.operand_count() / 2;
    const I64s before = op_.i64s(AttrKey::dimensions);
    I64s extents(order_.size(), 1);
    for (const int64_t d : before) {
      extents[static_cast<size_t>(d)] = op_.operand_type(0).dims()[static_cast<size_t>(d)];
    }
    if (!are_free(arrays) || !keeps_results(extents)) return false;
    I64s reduced, left;  // In the other order; `left` lists the dimensions of the result as it is.
    for (size_t d = 0; d < order_.size(); ++d)
      (contains(before, static_cast<int64_t>(d)) ? reduced : left).push_back(order_[d]);
    std::ranges::sort(reduced);
    I64s sorted = left;
    std::ranges::sort(sorted);
    I64s order;
    for (const int64_t d : left) order.push_back(std::ranges::find(sorted, d) - sorted.begin());
    set_operands(arrays);
    op_.mutable_attributes().set(AttrKey::dimensions, reduced);
    set_results(in_order(op_.result_type().dims(), inverse_order(order)), order);
    return true;
  }

  bool relabel_convolution() {
    auto dims = *op_.attr<ConvDims>(AttrKey::dimension_numbers);
    const auto take = [&](size_t i, int64_t& first, int64_t& second, I64s& spatial) {
      const Instruction* const found = transpose(op_.operand(i));
      if (found == nullptr) return false;
      const I64s& order = found->i64s(AttrKey::permutation);
      const auto map = [&](int64_t& d) { d = order[static_cast<size_t>(d)]; };
      map(first);
      map(second);
      std::ranges::for_each(spatial, map);
      op_.set_operand(i, found->operand(0));
      return true;
    };
    const bool input = take(0, dims.input_batch, dims.input_feature, dims.input_spatial);
    const bool kernel =
        take(1, dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial);
    if (input || kernel) op_.mutable_attributes().set(AttrKey::dimension_numbers, dims);
    return input || kernel;
  }

  Instruction& op_;
  TransposeSet& transposes_;
  I64s order_;
};

}  // namespace

bool sink_transposes(Module& module, TransposeSet& transposes) {
  return change_ops(module, [&](Instruction& op) { return Sinking(op, transposes).run(); });
}

}  // namespace tenon::hlo
