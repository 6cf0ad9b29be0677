// Rules of sums of products.
#include <algorithm>
#include <map>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {

Status check_precisions(const Instruction& op, std::string_view label) {
  const auto* precisions = op.attr<ArrayAttr>(AttrKey::precision_config);
  if (precisions == nullptr || precisions->empty() || precisions->size() == 2) return {};
  return rule_error(op, label, "precision_config has length {}, expected 2", precisions->size());
}

// The specification has no rule for dot_general, but a sum of floats cannot be an integer.
Status check_product_element(const Instruction& op, std::string_view label, const Type& result) {
  const Type& lhs = op.operand_type(0);
  if (lhs.is_quantized() || result.is_quantized()) return {};
  const ElementType from = lhs.element_type();
  const ElementType to = result.element_type();
  const bool fits = is_float(from)     ? is_float(to)
                    : is_complex(from) ? is_complex(to)
                    : is_pred(from)    ? !is_complex(to)
                                       : is_integer(to) || is_float(to);
  if (fits) return {};
  return rule_error(op, label, "a product of {} cannot be {}", name_of(from), name_of(to));
}

Result<std::vector<Dim>> dot_dimensions(const Instruction& op, const DotDims& dims,
                                        const I64s& rhs_group) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  TENON_TRY(check_length(op, "C1", "rhs_batching_dimensions", length(dims.rhs_batching),
                         length(dims.lhs_batching)));
  TENON_TRY(check_length(op, "C2", "rhs_contracting_dimensions", length(dims.rhs_contracting),
                         length(dims.lhs_contracting)));
  const I64s lhs_used = concatenated(dims.lhs_batching, dims.lhs_contracting);
  const I64s rhs_used = concatenated(dims.rhs_batching, dims.rhs_contracting);
  TENON_TRY(
      check_unique(op, "C3", "lhs_batching_dimensions + lhs_contracting_dimensions", lhs_used));
  TENON_TRY(
      check_unique(op, "C4", "rhs_batching_dimensions + rhs_contracting_dimensions", rhs_used));
  TENON_TRY(check_range(op, "C5", "lhs_batching_dimensions", dims.lhs_batching, lhs.rank()));
  TENON_TRY(check_range(op, "C6", "lhs_contracting_dimensions", dims.lhs_contracting, lhs.rank()));
  TENON_TRY(check_range(op, "C7", "rhs_batching_dimensions", dims.rhs_batching, rhs.rank()));
  TENON_TRY(check_range(op, "C8", "rhs_contracting_dimensions", dims.rhs_contracting, rhs.rank()));
  std::vector<Dim> result;
  for (size_t i = 0; i < dims.lhs_batching.size(); ++i) {
    const Dim a = dim_of(lhs, dims.lhs_batching[i]);
    const Dim b = dim_of(rhs, dims.rhs_batching[i]);
    if (!same_size(a.size, b.size)) {
      return rule_error(op, "C9", "batching dimension sizes differ: {} and {}", a.size, b.size);
    }
    result.push_back(merge(a, b));
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const Dim a = dim_of(lhs, dims.lhs_contracting[i]);
    const Dim b = dim_of(rhs, dims.rhs_contracting[i]);
    if (!same_size(a.size, b.size)) {
      return rule_error(op, "C10", "contracting dimension sizes differ: {} and {}", a.size, b.size);
    }
  }
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (!contains(lhs_used, d)) result.push_back(dim_of(lhs, d));
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (!contains(rhs_used, d) && !contains(rhs_group, d)) result.push_back(dim_of(rhs, d));
  }
  return result;
}

Status check_quantized_contraction(const Instruction& op, const ContractionLabels& labels,
                                   const Type& result) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  if (!rhs.is_quantized() || lhs.is_quantized() != result.is_quantized()) {
    return rule_error(op, labels.quantized,
                      "lhs is {}, rhs {} and the result {}, expected a quantized "
                      "rhs and both or none of the others",
                      lhs.to_string(), rhs.to_string(), result.to_string());
  }
  const QuantizedType& q = *rhs.quantized();
  if (!lhs.is_quantized()) {
    if (lhs.element_type() == q.expressed && result.element_type() == q.expressed) return {};
    return rule_error(op, labels.hybrid,
                      "lhs is {} and the result {}, expected {}, the expressed type "
                      "of rhs",
                      lhs.to_string(), result.to_string(), name_of(q.expressed));
  }
  if (lhs.quantized()->storage != q.storage) {
    return rule_error(op, labels.storage, "storage types differ: {} and {}",
                      name_of(lhs.quantized()->storage), name_of(q.storage));
  }
  if (lhs.quantized()->expressed != q.expressed || result.quantized()->expressed != q.expressed) {
    return rule_error(op, labels.expressed, "expressed types differ: {}, {} and {}",
                      name_of(lhs.quantized()->expressed), name_of(q.expressed),
                      name_of(result.quantized()->expressed));
  }
  if (!q.is_per_axis() && is_per_axis(result)) {
    return rule_error(op, labels.granularity, "result is {}, expected one scale as rhs has",
                      result.to_string());
  }
  return {};
}

// In practice, floats of different formats are multiplied (f8 variants), and so are integers.
// Floats are multiplied by the short integers that quantized weights are stored in.
bool multiplies(const Type& lhs, const Type& rhs) {
  if (same_element(lhs, rhs) || lhs.is_quantized() || rhs.is_quantized()) return true;
  const uint8_t classes[] = {type_class(lhs), type_class(rhs)};
  const auto is_short = [](const Type& type) { return bit_width(type.element_type()) <= 8; };
  if (classes[0] == kTypesFloat && classes[1] == kTypesInt) return is_short(rhs);
  if (classes[0] == kTypesInt && classes[1] == kTypesFloat) return is_short(lhs);
  return classes[0] == classes[1] && (classes[0] == kTypesFloat || classes[0] == kTypesInt);
}

namespace {

// A producer may state the element type.
Result<Type> product_type(const Instruction& op, const std::vector<Dim>& dims) {
  const bool is_stated = op.result_count() == 1 && op.result_type().is_tensor();
  Type type = with_dims(is_stated ? op.result_type() : op.operand_type(0), dims);
  TENON_TRY(check_product_element(op, "", type));
  return type;
}

Status check_algorithm(const Instruction& op) {
  const auto* algorithm = op.attr<DotAlgorithm>(AttrKey::algorithm);
  if (algorithm == nullptr) return {};
  // A configuration with only defaults is dropped, so a present one requests precision.
  if (const auto* precisions = op.attr<ArrayAttr>(AttrKey::precision_config)) {
    for (const Attribute& element : *precisions) {
      const auto* word = element.get<EnumAttr>();
      if (word != nullptr && word->value != 0) {
        return rule_error(op, "C21",
                          "precision_config has {} beside an algorithm, expected DEFAULT",
                          enum_word(*word));
      }
    }
  }
  if (algorithm->lhs_component_count < 1) {
    return rule_error(op, "C22", "lhs_component_count is {}, expected at least 1",
                      algorithm->lhs_component_count);
  }
  if (algorithm->rhs_component_count < 1) {
    return rule_error(op, "C23", "rhs_component_count is {}, expected at least 1",
                      algorithm->rhs_component_count);
  }
  if (algorithm->num_primitive_operations < 1) {
    return rule_error(op, "C24", "num_primitive_operations is {}, expected at least 1",
                      algorithm->num_primitive_operations);
  }
  return {};
}

}  // namespace

Types dot_general(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  TENON_TRY(check_per_tensor(op, "I1", 0));
  const auto& numbers = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  TENON_ASSIGN(const std::vector<Dim> dims, dot_dimensions(op, numbers));
  TENON_TRY(check_precisions(op, "C11"));
  if (!multiplies(lhs, rhs)) {
    return rule_error(op, "C13", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }
  TENON_ASSIGN(const Type result, product_type(op, dims));
  if (lhs.is_quantized() || rhs.is_quantized() || result.is_quantized()) {
    if (rhs.is_quantized()) {
      const QuantizedType& q = *rhs.quantized();
      if (std::any_of(q.zero_points.begin(), q.zero_points.end(),
                      [](int64_t z) { return z != 0; })) {
        return rule_error(op, "C15", "rhs is {}, expected zero points of 0", rhs.to_string());
      }
      if (q.is_per_axis() && contains(numbers.rhs_contracting, q.axis)) {
        return rule_error(op, "C16", "rhs is quantized along dimension {}, which is contracted",
                          q.axis);
      }
    }
    TENON_TRY(check_quantized_contraction(op, {"C14", "C17", "C18", "C19", "C20"}, result));
  }
  TENON_TRY(check_algorithm(op));
  return one(result);
}

Types dot(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  TENON_TRY(check_precisions(op, ""));
  TENON_TRY(check_per_tensor(op, "", 0));
  const bool has_ranks = lhs.rank() >= 1 && lhs.rank() <= 2 && rhs.rank() >= 1 && rhs.rank() <= 2;
  if (!has_ranks || !same_size(lhs.dims().back(), rhs.dims().front())) {
    return rule_error(op, "",
                      "cannot multiply {} by {}: expected vectors or matrices that share the "
                      "contracted size",
                      lhs.to_string(), rhs.to_string());
  }
  if (!multiplies(lhs, rhs)) {
    return rule_error(op, "", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }
  std::vector<Dim> dims;
  if (lhs.rank() == 2) dims.push_back(dim_of(lhs, 0));
  if (rhs.rank() == 2) dims.push_back(dim_of(rhs, 1));
  TENON_ASSIGN(const Type result, product_type(op, dims));
  return one(result);
}

namespace {

// "ab,bc->ac" on the operands: each letter has one size; each output letter occurs once and is
// known.
Types einstein_sum(const Instruction& op) {
  const std::string_view config = op.text(AttrKey::einsum_config);
  const size_t arrow = config.find("->");
  const auto malformed = [&](std::string_view why) -> Error {
    return rule_error(op, "", "einsum_config \"{}\" {}", config, why);
  };
  if (arrow == std::string_view::npos) return malformed("has no \"->\"");
  std::vector<std::string_view> inputs;
  std::string_view rest = config.substr(0, arrow);
  for (size_t comma; (comma = rest.find(',')) != std::string_view::npos;) {
    inputs.push_back(rest.substr(0, comma));
    rest.remove_prefix(comma + 1);
  }
  inputs.push_back(rest);
  if (inputs.size() != op.operand_count()) return malformed("does not name each operand once");
  std::map<char, Dim> sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& operand = op.operand_type(i);
    if (length(inputs[i]) != operand.rank()) return malformed("differs from the operands in rank");
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      const char letter = inputs[i][d];
      if ((letter < 'a' || letter > 'z') && (letter < 'A' || letter > 'Z')) {
        return malformed("has labels other than letters");
      }
      const Dim dim = dim_of(operand, static_cast<int64_t>(d));
      const auto [found, is_new] = sizes.emplace(letter, dim);
      if (is_new) continue;
      if (!same_size(found->second.size, dim.size)) {
        return rule_error(op, "", "einsum_config \"{}\" gives '{}' the sizes {} and {}", config,
                          letter, found->second.size, dim.size);
      }
      found->second = merge(found->second, dim);
    }
  }
  const std::string_view output = config.substr(arrow + 2);
  std::vector<Dim> dims;
  for (size_t i = 0; i < output.size(); ++i) {
    const auto found = sizes.find(output[i]);
    if (found == sizes.end() || output.find(output[i]) != i) {
      return malformed("has an output label that is unknown or twice there");
    }
    dims.push_back(found->second);
  }
  TENON_ASSIGN(const Type result, product_type(op, dims));
  return one(result);
}

}  // namespace

Types einsum(const Instruction& op) {
  if (!multiplies(op.operand_type(0), op.operand_type(1))) {
    return rule_error(op, "", "element types differ: {} and {}",
                      element_to_string(op.operand_type(0)), element_to_string(op.operand_type(1)));
  }
  return einstein_sum(op);
}

Types unary_einsum(const Instruction& op) { return einstein_sum(op); }

}  // namespace tenon::hlo::infer
