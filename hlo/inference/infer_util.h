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

/// An error about `op`, citing `label` of its section of the specification. Ops without a section
/// (CHLO, func, those that StableHLO froze) have no labels.
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

/// The size of a dimension, kDynamic when unknown, and then perhaps an upper bound.
struct Dim {
  int64_t size = kDynamic;
  int64_t bound = kDynamic;
};

Dim dim_of(const Type& type, int64_t axis);
std::vector<Dim> dims_of(const Type& type);
/// `like` (its element type, quantized or not) with other dimensions.
Type with_dims(const Type& like, const std::vector<Dim>& dims);
/// A plain type of the dimensions of `like`, bounds included.
Type with_element(const Type& like, ElementType element);

/// Whether the sizes can be equal: they are, or one is unknown.
bool same_size(int64_t a, int64_t b);
bool same_shape(const Type& a, const Type& b);
/// Two sizes known to be equal, merged: the size and bound that either of them knows.
Dim merge(Dim a, Dim b);
/// The dimensions of two types of the same shape, merged, with the element type of `a`.
Type most_specific(const Type& a, const Type& b);

/// The value if it fits 63 bits and a sign, for sums and products of sizes.
std::optional<int64_t> fits(__int128 value);
/// floor((size - window) / stride) + 1, with the dilations and padding of the specification;
/// nothing on overflow. Unknown when `size` or `window` is.
struct Window {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, dilation = 1;
};
std::optional<int64_t> window_count(int64_t size, const Window& window);

// ---- Element types ------------------------------------------------------------------------------

/// Element types as messages name them: "f32", or "q<…>" with all parameters.
std::string element_to_string(const Type& type);
/// Whether the element types are equal but for scales and zero points (and the quantized dimension,
/// which ops state rules of their own for): the specification's baseline_element_type.
bool same_element(const Type& a, const Type& b);
/// Equal in every parameter.
bool identical_element(const Type& a, const Type& b);
/// The specification's is_promotable, but any float to any float: mixed precision bodies are in
/// use.
bool promotable(const Type& from, const Type& to);
bool is_per_axis(const Type& type);
/// The TypeSet bit of the element type.
uint8_t type_class(const Type& type);

/// The fault of a type by itself (negative sizes, scales that do not fit its shape); empty if it
/// has none.
std::string type_fault(const Type& type);

/// Result `i` as stated where the rule leaves open how it is quantized, else `inferred`.
Type settle(const Instruction& op, size_t i, Type inferred);
/// The stated type of result `i`, for ops that do not determine it: a tensor.
Result<Type> stated_tensor(const Instruction& op, size_t i = 0);

// ---- Index lists --------------------------------------------------------------------------------

/// "[0, 2]"
std::string list_to_string(const I64s& list);
bool is_unique(std::span<const int64_t> list);
I64s concatenated(const I64s& a, const I64s& b);
/// Every value is in [0, limit).
Status check_range(const Instruction& op, std::string_view label, std::string_view name,
                   const I64s& list, int64_t limit);
/// No value occurs twice.
Status check_unique(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list);
/// Ascending, repeats allowed.
Status check_sorted(const Instruction& op, std::string_view label, std::string_view name,
                    const I64s& list);
/// The list has `size` elements.
Status check_length(const Instruction& op, std::string_view label, std::string_view name,
                    int64_t found, int64_t size);
/// Every value is positive.
Status check_positive(const Instruction& op, std::string_view label, std::string_view name,
                      const I64s& list);
/// A 0 <= dimension < rank attribute.
Status check_dimension(const Instruction& op, std::string_view label, std::string_view name,
                       int64_t dimension, int64_t rank);

/// The operand has one scale, if it is quantized at all.
Status check_per_tensor(const Instruction& op, std::string_view label, size_t operand);
/// The operand is a tensor of rank 0 (or 1) …
Status check_scalar(const Instruction& op, std::string_view label, size_t operand);
Status check_rank1(const Instruction& op, std::string_view label, size_t operand);
Status check_tensor(const Instruction& op, std::string_view label, size_t operand);
Status check_token(const Instruction& op, std::string_view label, size_t operand);
/// … and of integers (pred is not an integer type).
Status check_integer(const Instruction& op, std::string_view label, size_t operand);

/// The elements of a constant of integers, if `value` is one and not large.
std::optional<I64s> constant_integers(Value value);

// ---- Regions ------------------------------------------------------------------------------------

/// Types that the region returns; an error when it does not end in a return.
Result<std::vector<Type>> region_results(const Instruction& op, size_t region,
                                         std::string_view label);
Status check_parameter_count(const Instruction& op, size_t region, std::string_view label,
                             size_t count);
/// Parameter types compatible with `expected`.
Status check_parameters(const Instruction& op, size_t region, std::string_view label,
                        const std::vector<Type>& expected);
/// Types one by one compatible, but for quantization parameters.
bool all_compatible(const std::vector<Type>& a, const std::vector<Type>& b);
/// A reducer (E0…, E0…) -> (E0…) over rank-0 tensors, where each input promotes to its E. Gives the
/// E.
Result<std::vector<Type>> check_reducer(const Instruction& op, size_t region,
                                        std::string_view label, const std::vector<Type>& inputs,
                                        const std::vector<Type>& inits);

// ---- Result types -------------------------------------------------------------------------------

/// Labels of the constraints that fix an op's result types: of the element type, and of the shape
/// of each result, the last one for those behind it too.
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

/// Mixed quantization of dot_general and the convolutions, by the labels in that order:
/// is_quantized, storage types, expressed types, granularity, expressed type of a plain lhs.
struct ContractionLabels {
  std::string_view quantized, storage, expressed, granularity, hybrid;
};
Status check_quantized_contraction(const Instruction& op, const ContractionLabels& labels,
                                   const Type& result);
/// At most two precisions, one an operand.
Status check_precisions(const Instruction& op, std::string_view label);
/// Whether the stated element type of `result` can hold products of the operands.
Status check_product_element(const Instruction& op, std::string_view label, const Type& result);
/// Dimension numbers of dot_general (C1 to C10), and the dimensions of its result.
Result<std::vector<Dim>> dot_dimensions(const Instruction& op, const DotDims& dims,
                                        const I64s& rhs_group = {});
/// Per-axis parameters of an operand against those of a broadcast of it.
Status check_quantized_broadcast(const Instruction& op, const Type& operand, const Type& result,
                                 const I64s& broadcast_dimensions);
/// Reshape's constraints on a stated result.
Status check_reshape(const Instruction& op, const Type& operand, const Type& result);
/// All of convolution's constraints; `padding` is null when it is an operand.
Types convolution_with(const Instruction& op, const I64Matrix* padding);
/// All of gather's constraints; a slice size is unknown when it is an operand.
Types gather_with(const Instruction& op, const GatherDims& dims, const I64s& slice_sizes,
                  bool is_dynamic);

}  // namespace tenon::hlo::infer
