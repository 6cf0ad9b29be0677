#include "hlo/inference/infer_util.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace tenon::hlo::infer {

Dim dim_of(const Type& type, int64_t axis) {
  const Shape& shape = type.shape();
  Dim dim{shape.dim(at(axis)), kDynamic};
  if (dim.size == kDynamic && !shape.bounds().empty()) dim.bound = shape.bounds()[at(axis)];
  return dim;
}

std::vector<Dim> dims_of(const Type& type) {
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis < type.rank(); ++axis) dims.push_back(dim_of(type, axis));
  return dims;
}

Type with_dims(const Type& like, const std::vector<Dim>& dims) {
  Dims sizes;
  Dims bounds;
  bool has_bound = false;
  for (const Dim& dim : dims) {
    sizes.push_back(dim.size);
    bounds.push_back(dim.size == kDynamic ? dim.bound : kDynamic);
    has_bound = has_bound || bounds.back() != kDynamic;
  }
  Type type = like.with_dims(sizes);
  if (has_bound) type.mutable_shape() = Shape(like.element_type(), sizes, bounds);
  return type;
}

Type with_element(const Type& like, ElementType element) { return like.with_element_type(element); }

bool same_size(int64_t a, int64_t b) { return a == kDynamic || b == kDynamic || a == b; }

bool same_shape(const Type& a, const Type& b) {
  return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end(), same_size);
}

Dim merge(Dim a, Dim b) {
  if (a.size != kDynamic) return a;
  if (b.size != kDynamic) return b;
  if (a.bound == kDynamic) return b;
  if (b.bound == kDynamic) return a;
  return {kDynamic, std::min(a.bound, b.bound)};
}

Type most_specific(const Type& a, const Type& b) {
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis < a.rank(); ++axis) {
    dims.push_back(merge(dim_of(a, axis), dim_of(b, axis)));
  }
  return with_dims(a, dims);
}

std::optional<int64_t> fits(__int128 value) {
  // kDynamic is the least 64-bit number, so a size must be greater.
  if (value > std::numeric_limits<int64_t>::max() || value <= std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

std::optional<int64_t> window_count(int64_t size, const Window& window) {
  if (size == kDynamic || window.size == kDynamic) return kDynamic;
  const auto dilated = [](int64_t extent, int64_t dilation) -> __int128 {
    return extent == 0 ? 0 : static_cast<__int128>(extent - 1) * dilation + 1;
  };
  const __int128 input = dilated(size, window.base_dilation);
  const __int128 padded = input + window.low + window.high;
  const __int128 extent = dilated(window.size, window.dilation);
  if (!fits(input) || !fits(padded) || !fits(extent)) return std::nullopt;
  // Negative padding may crop more than the whole extent.
  if (padded <= 0 || extent > padded) return 0;
  return static_cast<int64_t>((padded - extent) / window.stride) + 1;
}

std::string element_to_string(const Type& type) {
  if (!type.is_quantized()) return std::string(name_of(type.element_type()));
  const std::string text = type.to_string();
  return text.substr(0, text.rfind('['));
}

bool same_element(const Type& a, const Type& b) {
  if (a.is_quantized() != b.is_quantized()) return false;
  if (!a.is_quantized()) return a.element_type() == b.element_type();
  const QuantizedType& x = *a.quantized();
  const QuantizedType& y = *b.quantized();
  return x.storage == y.storage && x.expressed == y.expressed && x.storage_min == y.storage_min &&
         x.storage_max == y.storage_max && x.is_per_axis() == y.is_per_axis();
}

bool identical_element(const Type& a, const Type& b) {
  if (a.is_quantized() != b.is_quantized()) return false;
  if (!a.is_quantized()) return a.element_type() == b.element_type();
  return *a.quantized() == *b.quantized();
}

bool promotable(const Type& from, const Type& to) {
  if (from.is_quantized() != to.is_quantized()) return false;
  if (from.is_quantized()) {
    return from.quantized()->expressed == to.quantized()->expressed &&
           bit_width(from.quantized()->storage) <= bit_width(to.quantized()->storage);
  }
  const ElementType x = from.element_type();
  const ElementType y = to.element_type();
  if (is_float(x)) return is_float(y) && bit_width(x) <= bit_width(y);
  if (is_integer(x)) return is_integer(y) && bit_width(x) <= bit_width(y);
  if (is_complex(x)) return is_complex(y) && bit_width(x) <= bit_width(y);
  return x == y;
}

bool is_per_axis(const Type& type) {
  return type.is_quantized() && type.quantized()->is_per_axis();
}

uint8_t type_class(const Type& type) {
  return type.is_quantized() ? kTypesQuantized : type_set_of(type.element_type());
}

Type settle(const Instruction& op, size_t i, Type inferred) {
  if (!inferred.is_quantized() || i >= op.result_count()) return inferred;
  const Type& stated = op.result_type(i);
  const bool fits_rule =
      stated.is_tensor() && same_element(stated, inferred) && same_shape(stated, inferred);
  return fits_rule ? stated : inferred;
}

Result<Type> stated_tensor(const Instruction& op, size_t i) {
  if (i >= op.result_count()) {
    return rule_error(op, "", "the result type follows from nothing else and must be stated");
  }
  if (!op.result_type(i).is_tensor()) {
    return rule_error(op, "", "result type is {}, expected a tensor",
                      op.result_type(i).to_string());
  }
  return op.result_type(i);
}

std::string list_to_string(const I64s& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", list[i]);
  return text + "]";
}

bool is_unique(std::span<const int64_t> list) {
  std::unordered_set<int64_t> seen;
  return std::all_of(list.begin(), list.end(), [&](int64_t v) { return seen.insert(v).second; });
}

I64s concatenated(const I64s& a, const I64s& b) {
  I64s both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

Status check_range(const Instruction& op, std::string_view label, std::string_view name,
                   const I64s& list, int64_t limit) {
  for (int64_t value : list) {
    if (value < 0 || value >= limit) {
      return rule_error(op, label, "{} contains {}, expected values in [0, {})", name, value,
                        limit);
    }
  }
  return {};
}

Status check_unique(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list) {
  if (is_unique(list)) return {};
  return rule_error(op, label, "{} is {}, expected no value twice", name, list_to_string(list));
}

Status check_sorted(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list) {
  if (std::is_sorted(list.begin(), list.end())) return {};
  return rule_error(op, label, "{} is {}, expected ascending values", name, list_to_string(list));
}

Status check_length(const Instruction& op, std::string_view label, std::string_view name,
                    int64_t found, int64_t size) {
  if (found == size) return {};
  return rule_error(op, label, "{} has length {}, expected {}", name, found, size);
}

Status check_positive(const Instruction& op, std::string_view label, std::string_view name,
                      const I64s& list) {
  for (int64_t value : list) {
    if (value <= 0) {
      return rule_error(op, label, "{} contains {}, expected positive values", name, value);
    }
  }
  return {};
}

Status check_dimension(const Instruction& op, std::string_view label, std::string_view name,
                       int64_t dimension, int64_t rank) {
  if (dimension >= 0 && dimension < rank) return {};
  return rule_error(op, label, "{} is {}, expected a value in [0, {})", name, dimension, rank);
}

Status check_per_tensor(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (!is_per_axis(type)) return {};
  return rule_error(op, label, "operand {} is {}, expected one scale for the whole tensor", operand,
                    type.to_string());
}

Status check_tensor(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (type.is_tensor()) return {};
  return rule_error(op, label, "operand {} is {}, expected a tensor", operand, type.to_string());
}

Status check_scalar(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (type.is_tensor() && type.rank() == 0) return {};
  return rule_error(op, label, "operand {} is {}, expected a 0-dimensional tensor", operand,
                    type.to_string());
}

Status check_rank1(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (type.is_tensor() && type.rank() == 1) return {};
  return rule_error(op, label, "operand {} is {}, expected a 1-dimensional tensor", operand,
                    type.to_string());
}

Status check_token(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (type.is_token()) return {};
  return rule_error(op, label, "operand {} is {}, expected a token", operand, type.to_string());
}

Status check_integer(const Instruction& op, std::string_view label, size_t operand) {
  const Type& type = op.operand_type(operand);
  if (type.is_tensor() && type_class(type) == kTypesInt) return {};
  return rule_error(op, label, "operand {} is {}, expected a tensor of integers", operand,
                    type.to_string());
}

std::optional<I64s> constant_integers(Value value) {
  constexpr int64_t kLargest = 4096;
  if (value.def == nullptr || value.def->code() != OpCode::kConstant) return std::nullopt;
  const auto* dense = value.def->attr<DenseAttr>(AttrKey::value);
  if (dense == nullptr || !dense->shape.is_static()) return std::nullopt;
  if (!is_integer(dense->shape.element_type())) return std::nullopt;
  const Result<int64_t> count = checked_element_count(dense->shape.dims());
  if (!count || *count > kLargest) return std::nullopt;
  const Literal all = dense->expanded();
  I64s values;
  for (int64_t i = 0; i < *count; ++i) values.push_back(all.get_integer(i));
  return values;
}

Result<std::vector<Type>> region_results(const Instruction& op, size_t region,
                                         std::string_view label) {
  const Instruction* end = op.region(region).return_instruction();
  if (end == nullptr) {
    return rule_error(op, label, "region {} does not end in a return", region);
  }
  return op.region(region).result_types();
}

Status check_parameter_count(const Instruction& op, size_t region, std::string_view label,
                             size_t count) {
  const size_t found = op.region(region).parameter_count();
  if (found == count) return {};
  return rule_error(op, label, "region {} takes {} parameters, expected {}", region, found, count);
}

bool all_compatible(const std::vector<Type>& a, const std::vector<Type>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Type& x, const Type& y) {
    if (!x.is_tensor() || !y.is_tensor()) return compatible(x, y);
    return same_element(x, y) && same_shape(x, y);
  });
}

Status check_parameters(const Instruction& op, size_t region, std::string_view label,
                        const std::vector<Type>& expected) {
  const std::vector<Type> found = op.region(region).parameter_types();
  if (all_compatible(found, expected)) return {};
  return rule_error(op, label, "region {} takes ({}), expected ({})", region,
                    types_to_string(found), types_to_string(expected));
}

Result<std::vector<Type>> check_reducer(const Instruction& op, size_t region,
                                        std::string_view label, const std::vector<Type>& inputs,
                                        const std::vector<Type>& inits) {
  const size_t count = inputs.size();
  TENON_TRY(check_parameter_count(op, region, label, 2 * count));
  TENON_ASSIGN(std::vector<Type> results, region_results(op, region, label));
  if (results.size() != count) {
    return rule_error(op, label, "region {} returns {} values, expected {}", region, results.size(),
                      count);
  }
  const std::vector<Type> parameters = op.region(region).parameter_types();
  for (size_t i = 0; i < count; ++i) {
    const Type& result = results[i];
    if (!result.is_tensor() || result.rank() != 0) {
      return rule_error(op, label,
                        "region {} returns {} as result {}, expected a 0-dimensional tensor",
                        region, result.to_string(), i);
    }
    for (const size_t p : {i, count + i}) {
      const Type& parameter = parameters[p];
      // The second half holds the elements, whose float type may differ from the accumulator's.
      const bool fits_result = parameter.is_tensor() && parameter.rank() == 0 &&
                               (identical_element(parameter, result) ||
                                (p >= count && type_class(parameter) == kTypesFloat &&
                                 type_class(result) == kTypesFloat));
      if (!fits_result) {
        return rule_error(op, label, "region {} takes {} as parameter {}, expected {}", region,
                          parameter.to_string(), p, result.to_string());
      }
    }
    for (const Type* from : {&inputs[i], &inits[i]}) {
      if (!promotable(*from, result)) {
        return rule_error(op, label,
                          "region {} returns {} as result {}, which {} does not promote to", region,
                          result.to_string(), i, element_to_string(*from));
      }
    }
  }
  return results;
}

}  // namespace tenon::hlo::infer
