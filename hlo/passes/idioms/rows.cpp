// Idioms that normalize rows: softmax, layer norm, attention.
#include <algorithm>

#include "hlo/passes/constants.h"
#include "hlo/passes/idioms/idiom.h"

namespace tenon::hlo::idioms {
namespace {

// The dimension that a reduction removes, if it removes exactly one.
std::optional<int64_t> reduced_dimension(const Instruction& reduce) {
  const I64s& dimensions = reduce.i64s(AttrKey::dimensions);
  if (dimensions.size() != 1) return {};
  return dimensions[0];
}

Dims without(Dims dims, int64_t axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}
Dims with_one(Dims dims, int64_t axis) {
  dims[static_cast<size_t>(axis)] = 1;
  return dims;
}

// Checks that values with one number per row keep the order of the rows: each op between `value`
// and its sources is a reduction along `axis`, a reshape or broadcast that adds this dimension or
// repeats along it, or an elementwise op.
class RowCheck {
 public:
  RowCheck(const Dims& full, int64_t axis)
      : full_(full), axis_(axis), rows_(without(full, axis)), kept_(with_one(full, axis)) {}

  bool holds(Value value) const {
    if (splat_of(value) != nullptr) return true;
    const Instruction& op = *value.def;
    switch (op.code()) {
      case OpCode::kReduce:
        return value.type().dims() == rows_ && reduced_dimension(op) == axis_;
      case OpCode::kReshape:
        return is_rows(value) && is_rows(op.operand(0)) && holds(op.operand(0));
      case OpCode::kBroadcastInDim:
        return (value.type().dims() == full_ || is_rows(value)) && spreads(op) &&
               holds(op.operand(0));
      default: {
        if (!is_rows(value) || op.operand_count() == 0 || op.region_count() != 0) return false;
        for (size_t i = 0; i < op.operand_count(); ++i) {
          const bool is_elementwise = op.operand_type(i).dims() == value.type().dims();
          if (!is_elementwise || !holds(op.operand(i))) return false;
        }
        return true;
      }
    }
  }

 private:
  bool is_rows(Value value) const {
    return value.type().dims() == rows_ || value.type().dims() == kept_;
  }
  // The dimensions of the operand keep their positions; the dimension of the row may be missing.
  bool spreads(const Instruction& op) const {
    const Value from = op.operand(0);
    if (!is_rows(from)) return false;
    I64s expected;
    const bool has_axis = from.type().dims().size() == full_.size();
    for (int64_t d = 0; d < static_cast<int64_t>(full_.size()); ++d) {
      if (has_axis || d != axis_) expected.push_back(d);
    }
    return op.result_type().dims().size() == full_.size() &&
           op.i64s(AttrKey::broadcast_dimensions) == expected;
  }

  const Dims& full_;
  const int64_t axis_;
  const Dims rows_;
  const Dims kept_;
};

// The reduction from which a number per row is computed, or null.
const Instruction* reduction_behind(Value value) {
  while (value.def->code() != OpCode::kReduce) {
    const auto& operands = value.def->operands();
    const auto varies =
        std::ranges::find_if(operands, [](Value operand) { return splat_of(operand) == nullptr; });
    if (varies == operands.end()) return nullptr;
    value = *varies;
  }
  return value.def;
}

// The dimension of a softmax whose final division is `divide`.
std::optional<int64_t> softmax_dimension(const Instruction& divide) {
  const Value exponential = divide.operand(0);
  const Value centered = exponential.def->operand(0);
  const Value total = divide.operand(1);
  const Instruction* const sum = reduction_behind(total);
  const auto axis = sum == nullptr ? std::nullopt : reduced_dimension(*sum);
  if (!axis) return {};
  const RowCheck check(divide.result_type().dims(), *axis);
  if (!check.holds(total) || !check.holds(centered.def->operand(1))) return {};
  return axis;
}

bool is_count(Value value, int64_t count, bool is_inverse) {
  const Literal* const number = splat_of(value);
  if (number == nullptr || is_complex(number->element_type())) return false;
  const double expected =
      is_inverse ? 1.0 / static_cast<double>(count) : static_cast<double>(count);
  return number->get_double(0) == Literal::scalar(number->element_type(), expected).get_double(0);
}

// The number that a name matched; `usual` if the match has no such name. Nothing if the value is
// not a number.
std::optional<double> number_of(const PatternCaptures& match, std::string_view name, double usual) {
  const Value value = match[name];
  if (!value) return usual;
  const Literal* const number = splat_of(value);
  if (number == nullptr || !is_float(number->element_type())) return {};
  return number->get_double(0);
}

Attribute real(double value) { return Attribute(FloatAttr::of(ElementType::kF64, value)); }

}  // namespace

std::optional<Dict> softmax(const PatternCaptures& match) {
  const auto axis = softmax_dimension(match.root());
  if (!axis) return {};
  return Dict{{"dimension", Attribute(*axis)}};
}

std::optional<Dict> layer_norm(const PatternCaptures& match) {
  const Instruction& root = match.root();
  const Value centered = match["c"];
  const Value scale = root.operand(0) == centered ? root.operand(1) : root.operand(0);
  const Value mean = centered.def->operand(1);
  const Instruction* const sum = reduction_behind(mean);
  const auto axis = sum == nullptr ? std::nullopt : reduced_dimension(*sum);
  if (!axis) return {};
  const Dims& full = root.result_type().dims();
  const RowCheck check(full, *axis);
  if (!check.holds(mean) || !check.holds(scale)) return {};
  const int64_t size = full[static_cast<size_t>(*axis)];
  for (const auto& [name, is_inverse] : {std::pair{"count", false}, {"inverse_count", true}}) {
    if (match[name] && !is_count(match[name], size, is_inverse)) return {};
  }
  const auto epsilon = number_of(match, "epsilon", 0);
  if (!epsilon) return {};
  return Dict{{"dimension", Attribute(*axis)}, {"epsilon", real(*epsilon)}};
}

std::optional<Dict> attention(const PatternCaptures& match) {
  const Instruction& root = match.root();
  const Instruction& product = match.op("p");
  const auto axis = softmax_dimension(match.op("w"));
  if (!axis) return {};
  const auto& scores = *product.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const auto& output = *root.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const bool weights_first = root.operand(1) == match["v"];
  const I64s& contracted = weights_first ? output.lhs_contracting : output.rhs_contracting;
  if (contracted != I64s{*axis}) return {};
  const auto scale = number_of(match, "scale", 1);
  const auto divisor = number_of(match, "divisor", 1);
  const auto fill = number_of(match, "fill", 0);
  if (!scale || !divisor || !fill) return {};
  Dict attributes = {{"output_lhs_batch", Attribute(output.lhs_batching)},
                     {"output_lhs_contracting", Attribute(output.lhs_contracting)},
                     {"output_rhs_batch", Attribute(output.rhs_batching)},
                     {"output_rhs_contracting", Attribute(output.rhs_contracting)},
                     {"scale", real(*scale / *divisor)},
                     {"scores_lhs_batch", Attribute(scores.lhs_batching)},
                     {"scores_lhs_contracting", Attribute(scores.lhs_contracting)},
                     {"scores_rhs_batch", Attribute(scores.rhs_batching)},
                     {"scores_rhs_contracting", Attribute(scores.rhs_contracting)},
                     {"weights_first", Attribute(weights_first)}};
  if (match["fill"]) attributes.insert(attributes.begin(), {"fill", real(*fill)});
  return attributes;
}

}  // namespace tenon::hlo::idioms
