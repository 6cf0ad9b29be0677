// Helpers of the shape rules: sizes that may be unknown, element types up to quantization, index
// lists, windows and the signatures of regions. Private to hlo/inference.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hlo/inference/infer.h"

namespace tenon::hlo::infer {

/// An error about `op` that cites `label` of its section of the specification. Ops without a
/// section (CHLO, func, ops frozen by StableHLO) have no labels.
template <class... Args>
Error rule_error(const Instruction& op, std::string_view label, fmt::format_string<Args...> format,
                 Args&&... args) {
  if (!label.empty() && op.info().dialect() == "stablehlo") {
    return constraint_error(op, label, format, std::forward<Args>(args)...);
  }
  return invalid_argument("{}: {}", op.name(), fmt::format(format, std::forward<Args>(args)...))
      .at(position_of(op.location()));
}

inline std::vector<Type> one(Type type) { return {std::move(type)}; }
inline int64_t length(const auto& list) { return static_cast<int64_t>(list.size()); }
inline size_t at(int64_t index) { return static_cast<size_t>(index); }

// ---- Sizes --------------------------------------------------------------------------------------

/// The size of a dimension; kDynamic if unknown, possibly with an upper bound.
struct Dim {
  int64_t size = kDynamic;
  int64_t bound = kDynamic;
};

Dim dim_of(const Type& type, int64_t axis);
std::vector<Dim> dims_of(const Type& type);
/// `like` (its element type, quantized or not) with other dimensions.
Type with_dims(const Type& like, const std::vector<Dim>& dims);
/// A plain type with the dimensions of `like`, including bounds.
Type with_element(const Type& like, ElementType element);

/// Whether the sizes can be equal: they are equal, or one is unknown.
bool same_size(int64_t a, int64_t b);
bool same_shape(const Type& a, const Type& b);
/// Merges two sizes that must be equal: the size and bound that either of them knows.
Dim merge(Dim a, Dim b);
/// The merged dimensions of two types of the same shape, with the element type of `a`.
Type most_specific(const Type& a, const Type& b);

/// The value if it fits a signed 64-bit integer; for sums and products of sizes.
std::optional<int64_t> fits(__int128 value);
/// floor((size - window) / stride) + 1, with the specification's dilations and padding; nothing if
/// that or a dilated size overflows. Unknown if `size` or `window` is.
struct Window {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, dilation = 1;
};
std::optional<int64_t> window_count(int64_t size, const Window& window);

// ---- Element types ------------------------------------------------------------------------------

/// The element type as messages show it: "f32", or "q<…>" with all parameters.
std::string element_to_string(const Type& type);
/// Whether the element types are equal except for scales and zero points (and the quantized
/// dimension, for which ops have their own rules): the specification's baseline_element_type.
bool same_element(const Type& a, const Type& b);
/// Equal in every parameter.
bool identical_element(const Type& a, const Type& b);
/// The specification's is_promotable, but from any float to any float, because programs with
/// mixed-precision bodies exist.
bool promotable(const Type& from, const Type& to);
bool is_per_axis(const Type& type);
/// The TypeSet bit of the element type.
uint8_t type_class(const Type& type);

/// The reason why a type is invalid by itself (negative sizes, scales that do not fit its shape);
/// empty if it is valid.
std::string type_fault(const Type& type);

/// Result `i` as stated if the rule does not determine its quantization, else `inferred`.
Type settle(const Instruction& op, size_t i, Type inferred);
/// The stated type of result `i`, which must be a tensor; for ops that do not determine it.
Result<Type> stated_tensor(const Instruction& op, size_t i = 0);

// ---- Index lists --------------------------------------------------------------------------------

/// "[0, 2]"
std::string list_to_string(const I64s& list);
bool is_unique(std::span<const int64_t> list);
I64s concatenated(const I64s& a, const I64s& b);
/// Checks that every value is in [0, limit).
Status check_range(const Instruction& op, std::string_view label, std::string_view name,
                   const I64s& list, int64_t limit);
/// Checks that no value occurs twice.
Status check_unique(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list);
/// Checks that values are ascending; duplicates are allowed.
Status check_sorted(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list);
/// Checks that the list has `size` elements.
Status check_length(const Instruction& op, std::string_view label, std::string_view name,
                    int64_t found, int64_t size);
/// Checks that every value is positive.
Status check_positive(const Instruction& op, std::string_view label, std::string_view name,
                      const I64s& list);
/// Checks that 0 <= dimension < rank for an attribute.
Status check_dimension(const Instruction& op, std::string_view label, std::string_view name,
                       int64_t dimension, int64_t rank);

/// Checks that the operand has one scale, if it is quantized at all.
Status check_per_tensor(const Instruction& op, std::string_view label, size_t operand);
/// Checks that the operand is a tensor of rank 0 (or 1) …
Status check_scalar(const Instruction& op, std::string_view label, size_t operand);
Status check_rank1(const Instruction& op, std::string_view label, size_t operand);
Status check_tensor(const Instruction& op, std::string_view label, size_t operand);
Status check_token(const Instruction& op, std::string_view label, size_t operand);
/// … and of integers (pred is not an integer type).
Status check_integer(const Instruction& op, std::string_view label, size_t operand);

/// The elements of a constant of integers, if `value` is one and not large.
std::optional<I64s> constant_integers(Value value);

// ---- Regions ------------------------------------------------------------------------------------

/// The types that the region returns; an error if it does not end in a return.
Result<std::vector<Type>> region_results(const Instruction& op, size_t region,
                                         std::string_view label);
Status check_parameter_count(const Instruction& op, size_t region, std::string_view label,
                             size_t count);
/// Checks that parameter types are compatible with `expected`.
Status check_parameters(const Instruction& op, size_t region, std::string_view label,
                        const std::vector<Type>& expected);
/// Whether the types are compatible pairwise, ignoring quantization parameters.
bool all_compatible(const std::vector<Type>& a, const std::vector<Type>& b);
/// Checks a reducer (E0…, E0…) -> (E0…) over rank-0 tensors, where each input promotes to its E.
/// Returns the types E.
Result<std::vector<Type>> check_reducer(const Instruction& op, size_t region,
                                        std::string_view label, const std::vector<Type>& inputs,
                                        const std::vector<Type>& inits);

// ---- Result types -------------------------------------------------------------------------------

/// Labels of the constraints that determine an op's result types: for the element type, and for the
/// shape of each result; the last one also applies to all further results.
struct ResultClause {
  std::string_view element;
  std::string_view shapes[3];
  std::string_view shape_of(size_t result) const {
    size_t i = std::min<size_t>(result, 2);
    while (i > 0 && shapes[i].empty()) --i;
    return shapes[i];
  }
};
ResultClause result_clause(const Instruction& op);

// ---- Rules that several ops share ---------------------------------------------------------------

/// Mixed quantization of dot_general and the convolutions, by the labels in this order:
/// is_quantized, storage types, expressed types, granularity, expressed type of a plain lhs.
struct ContractionLabels {
  std::string_view quantized, storage, expressed, granularity, hybrid;
};
Status check_quantized_contraction(const Instruction& op, const ContractionLabels& labels,
                                   const Type& result);
/// Checks that there are at most two precisions, one per operand.
Status check_precisions(const Instruction& op, std::string_view label);
/// Whether elements of the two types are multiplied: floats of any formats are, so are integers,
/// and floats by integers of at most 8 bits.
bool multiplies(const Type& lhs, const Type& rhs);
/// Whether the stated element type of `result` can hold products of the operands.
Status check_product_element(const Instruction& op, std::string_view label, const Type& result);
/// Checks that compare_type, if stated, compares numbers of operand 0.
Status check_compare_type(const Instruction& op, std::string_view label);
/// Checks the dimension numbers of dot_general (C1 to C10), and returns the dimensions of its
/// result.
Result<std::vector<Dim>> dot_dimensions(const Instruction& op, const DotDims& dims,
                                        const I64s& rhs_group = {});
/// Compares the per-axis parameters of an operand with those of its broadcast.
Status check_quantized_broadcast(const Instruction& op, const Type& operand, const Type& result,
                                 const I64s& broadcast_dimensions);
/// Checks reshape's constraints on a stated result.
Status check_reshape(const Instruction& op, const Type& operand, const Type& result);
/// Checks all constraints of convolution; `padding` is null if it is an operand.
Types convolution_with(const Instruction& op, const I64Matrix* padding);
/// Checks all constraints of gather; `slice_sizes` is null if they are an operand that is not
/// constant.
Types gather_with(const Instruction& op, const GatherDims& dims, const I64s* slice_sizes,
                  bool is_dynamic);

}  // namespace tenon::hlo::infer
