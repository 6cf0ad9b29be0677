// Rules of ops whose result shape is the value of an operand. The stated result type has the sizes
// that the program knows; it is checked against constant operands.
#include <algorithm>
#include <limits>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

// Checks for a rank-1 operand of integers with one element for each of `rank` dimensions.
Status check_shape_operand(const Instruction& op, std::string_view type_label,
                           std::string_view size_label, size_t operand, int64_t rank) {
  TENON_TRY(check_rank1(op, type_label, operand));
  TENON_TRY(check_integer(op, type_label, operand));
  const Type& type = op.operand_type(operand);
  if (same_size(type.dims()[0], rank)) return {};
  return rule_error(op, size_label, "operand {} is {}, expected {} elements", operand,
                    type.to_string(), rank);
}

// Checks the result shape in operand `operand`: the number of its elements and, if constant, its
// value.
Status check_output_shape(const Instruction& op, std::string_view type_label,
                          std::string_view label, size_t operand, const Type& result) {
  TENON_TRY(check_shape_operand(op, type_label, label, operand, result.rank()));
  if (op.operand_type(operand).dims()[0] == kDynamic) {
    return rule_error(op, type_label, "operand {} is {}, from which no rank follows", operand,
                      op.operand_type(operand).to_string());
  }
  const std::optional<I64s> sizes = constant_integers(op.operand(operand));
  if (!sizes) return {};
  if (!std::equal(sizes->begin(), sizes->end(), result.dims().begin(), result.dims().end(),
                  [](int64_t size, int64_t dim) { return size >= 0 && same_size(size, dim); })) {
    return rule_error(op, label, "result is {}, expected the shape {}", result.to_string(),
                      list_to_string(*sizes));
  }
  return {};
}

// The stated result refined by a constant shape operand.
Type refined(const Type& stated, const std::optional<I64s>& sizes) {
  if (!sizes || length(*sizes) != stated.rank()) return stated;
  std::vector<Dim> dims;
  for (int64_t size : *sizes) dims.push_back({size, kDynamic});
  return with_dims(stated, dims);
}

}  // namespace

Types dynamic_broadcast_in_dim(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  const Type& operand = op.operand_type(0);
  const I64s& dimensions = op.i64s(AttrKey::broadcast_dimensions);
  const bool may_differ = is_per_axis(operand) && is_per_axis(stated);
  if (may_differ ? !same_element(operand, stated) : !identical_element(operand, stated)) {
    return rule_error(op, "C1", "result is {}, expected elements {}", stated.to_string(),
                      element_to_string(operand));
  }
  TENON_TRY(check_length(op, "C2", "broadcast_dimensions", length(dimensions), operand.rank()));
  TENON_TRY(check_range(op, "C3", "broadcast_dimensions", dimensions, stated.rank()));
  TENON_TRY(check_unique(op, "C4", "broadcast_dimensions", dimensions));
  TENON_TRY(check_output_shape(op, "I2", "C7", 1, stated));
  const Type result = refined(stated, constant_integers(op.operand(1)));
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t size = operand.dims()[at(d)];
    const int64_t target = result.dims()[at(dimensions[at(d)])];
    if (size != 1 && !same_size(size, target)) {
      return rule_error(op, "C5",
                        "operand dimension {} is {}, expected 1 or {}, the size of result "
                        "dimension {}",
                        d, size, target, dimensions[at(d)]);
    }
  }
  TENON_TRY(check_quantized_broadcast(op, operand, stated, dimensions));
  const I64s& expanding = op.i64s(AttrKey::known_expanding_dimensions);
  const I64s& nonexpanding = op.i64s(AttrKey::known_nonexpanding_dimensions);
  TENON_TRY(check_unique(op, "C8", "known_expanding_dimensions + known_nonexpanding_dimensions",
                         concatenated(expanding, nonexpanding)));
  TENON_TRY(check_range(op, "C9", "known_expanding_dimensions", expanding, operand.rank()));
  TENON_TRY(check_range(op, "C10", "known_nonexpanding_dimensions", nonexpanding, operand.rank()));
  return one(result);
}

Types dynamic_reshape(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  TENON_TRY(check_output_shape(op, "I2", "C4", 1, stated));
  const Type result = refined(stated, constant_integers(op.operand(1)));
  TENON_TRY(check_reshape(op, op.operand_type(0), result));
  return one(result);
}

Types dynamic_iota(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  TENON_TRY(check_dimension(op, "C1", "iota_dimension", op.integer(AttrKey::iota_dimension),
                            stated.rank()));
  TENON_TRY(check_output_shape(op, "I1", "C2", 0, stated));
  return one(refined(stated, constant_integers(op.operand(0))));
}

Types dynamic_pad(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Type stated = op.result_count() == 1
                          ? op.result_type()
                          : with_dims(operand, std::vector<Dim>(operand.dims().size()));
  TENON_TRY(check_scalar(op, "I2", 1));
  if (!stated.is_tensor() || !same_element(operand, op.operand_type(1)) ||
      !same_element(operand, stated)) {
    return rule_error(
        op, "C1", "operand is {}, padding value {} and the result {}, expected one element type",
        operand.to_string(), op.operand_type(1).to_string(), stated.to_string());
  }
  for (size_t i = 2; i < 5; ++i) {
    TENON_TRY(check_shape_operand(op, fmt::format("I{}", i + 1), "C2", i, operand.rank()));
  }
  if (stated.rank() != operand.rank()) {
    return rule_error(op, "C4", "result is {}, expected the rank of {}", stated.to_string(),
                      operand.to_string());
  }
  const auto low = constant_integers(op.operand(2));
  const auto high = constant_integers(op.operand(3));
  const auto interior = constant_integers(op.operand(4));
  std::vector<Dim> dims = dims_of(stated);
  for (size_t d = 0; interior && d < dims.size(); ++d) {
    if ((*interior)[d] < 0) {
      return rule_error(op, "C3", "interior_padding contains {}, expected values from 0 on",
                        (*interior)[d]);
    }
    const int64_t size = operand.dims()[d];
    if (!low || !high || size == kDynamic) continue;
    const __int128 spread = static_cast<__int128>(size) +
                            static_cast<__int128>(std::max<int64_t>(size - 1, 0)) * (*interior)[d];
    const auto padded = fits(spread + (*low)[d] + (*high)[d]);
    if (!fits(spread) || !padded || *padded < 0 || !same_size(*padded, dims[d].size)) {
      return rule_error(op, "C4",
                        "dimension {} of the result {} does not follow from {} padded by {}, "
                        "{} and {} between",
                        d, stated.to_string(), operand.to_string(), (*low)[d], (*high)[d],
                        (*interior)[d]);
    }
    dims[d] = {*padded, kDynamic};
  }
  return one(with_dims(stated, dims));
}

Types dynamic_gather(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  TENON_TRY(check_shape_operand(op, "I3", "C11", 2, operand.rank()));
  const std::optional<I64s> sizes = constant_integers(op.operand(2));
  return gather_with(op, *op.attr<GatherDims>(AttrKey::dimension_numbers),
                     sizes ? &*sizes : nullptr, true);
}

Types dynamic_conv(const Instruction& op) {
  const Type& padding = op.operand_type(2);
  const int64_t spatial = op.operand_type(0).rank() - 2;
  TENON_TRY(check_integer(op, "I3", 2));
  if (padding.rank() != 2 || !same_size(padding.dims()[0], spatial) ||
      !same_size(padding.dims()[1], 2)) {
    return rule_error(op, "C4", "padding is {}, expected the shape [{}, 2]", padding.to_string(),
                      spatial);
  }
  const std::optional<I64s> values = constant_integers(op.operand(2));
  if (!values) return convolution_with(op, nullptr);
  const I64Matrix matrix{padding.dims()[0], padding.dims()[1], *values};
  return convolution_with(op, &matrix);
}

Types real_dynamic_slice(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  for (size_t i = 1; i < 4; ++i) TENON_TRY(check_shape_operand(op, "", "", i, operand.rank()));
  const auto start = constant_integers(op.operand(1));
  const auto limit = constant_integers(op.operand(2));
  const auto strides = constant_integers(op.operand(3));
  std::vector<Dim> dims(operand.dims().size());
  const bool is_stated = op.result_count() == 1 && op.result_type().is_tensor() &&
                         op.result_type().rank() == operand.rank();
  if (is_stated) dims = dims_of(op.result_type());
  for (size_t d = 0; start && limit && strides && d < dims.size(); ++d) {
    const int64_t most = operand.dims()[d];
    if ((*start)[d] < 0 || (*start)[d] > (*limit)[d] || (*strides)[d] <= 0 ||
        (most != kDynamic && (*limit)[d] > most)) {
      return rule_error(op, "",
                        "dimension {} is sliced from {} to {} by {}, expected bounds in order "
                        "within {} and a positive stride",
                        d, (*start)[d], (*limit)[d], (*strides)[d], operand.to_string());
    }
    const int64_t extent = (*limit)[d] - (*start)[d];
    dims[d] = {extent / (*strides)[d] + (extent % (*strides)[d] != 0), kDynamic};
  }
  return one(settle(op, 0, with_dims(operand, dims)));
}

Types get_dimension_size(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const int64_t dimension = op.integer(AttrKey::dimension);
  TENON_TRY(check_dimension(op, "C1", "dimension", dimension, operand.rank()));
  const int64_t size = operand.dims()[at(dimension)];
  if (size > std::numeric_limits<int32_t>::max()) {
    return rule_error(op, "", "dimension {} of {} has a size that s32, the result's type, has not",
                      dimension, operand.to_string());
  }
  return one(Type::tensor(ElementType::kS32, {}));
}

Types set_dimension_size(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const int64_t dimension = op.integer(AttrKey::dimension);
  TENON_TRY(check_dimension(op, "", "dimension", dimension, operand.rank()));
  TENON_TRY(check_scalar(op, "", 1));
  TENON_TRY(check_integer(op, "", 1));
  std::vector<Dim> dims = dims_of(operand);
  Dim& dim = dims[at(dimension)];
  const int64_t most = dim.size != kDynamic ? dim.size : dim.bound;
  // A slice of the whole dimension keeps its size.
  const std::optional<I64s> size = constant_integers(op.operand(1));
  if (size && size->size() == 1 && most != kDynamic) {
    if ((*size)[0] < 0 || (*size)[0] > most) {
      return rule_error(op, "", "size is {}, expected 0 to {}, the size in {}", (*size)[0], most,
                        operand.to_string());
    }
    if ((*size)[0] == most) {
      dim = {most, kDynamic};
      return one(with_dims(operand, dims));
    }
  }
  dim = {kDynamic, most};
  return one(with_dims(operand, dims));
}

}  // namespace tenon::hlo::infer
