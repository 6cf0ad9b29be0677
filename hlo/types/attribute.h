// Attributes: compile-time constants attached to instructions, functions and modules.
//
// An op's own attributes have the kinds that its row in the op table states. They are kept in one
// canonical form, independent of the spelling from which they were read (text, generic or pretty;
// artifact of any version): index lists are I64s, two-dimensional ones I64Matrix, and an attribute
// that equals its default is absent. Two Modules are therefore equal exactly if their fields are.
// Attributes that the table does not declare (frontend attributes, foreign dialects) are kept as
// read in the instruction's discardable dictionary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/types/literal.h"
#include "hlo/types/type.h"

namespace tenon::hlo {

class Attribute;

struct Unit {
  bool operator==(const Unit&) const = default;
};
/// An integer with the type with which it was written (s64 if that does not matter).
struct IntegerAttr {
  int64_t value = 0;
  ElementType type = ElementType::kS64;
  bool operator==(const IntegerAttr&) const = default;
};
/// A float, kept as the bits of its type, so that NaNs can be compared.
struct FloatAttr {
  uint64_t bits = 0;
  ElementType type = ElementType::kF32;
  double value() const;
  static FloatAttr of(ElementType type, double value);
  bool operator==(const FloatAttr&) const = default;
};
struct SymbolAttr {
  std::string name;
  bool operator==(const SymbolAttr&) const = default;
};
/// The text of an attribute of a dialect that Tenon does not interpret, verbatim.
struct OpaqueAttr {
  std::string text;
  bool operator==(const OpaqueAttr&) const = default;
};
using I64s = std::vector<int64_t>;
struct BoolsAttr {
  std::vector<uint8_t> values;  ///< 0 or 1 each
  bool operator==(const BoolsAttr&) const = default;
};
/// Row-major; `padding`, `replica_groups`, `source_target_pairs`.
struct I64Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  I64s values;
  int64_t at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
  bool operator==(const I64Matrix&) const = default;
};
/// A constant array. If all elements are equal, it is kept as one rank-0 element.
struct DenseAttr {
  Shape shape;
  Literal values;  ///< of `shape`, or rank 0 for a splat

  static DenseAttr of(Literal literal);
  static DenseAttr splat(Shape shape, Literal element);
  bool is_splat() const { return values.shape().is_scalar() && !shape.is_scalar(); }
  /// All elements; the caller must have checked shape.element_count().
  Literal expanded() const;
  bool operator==(const DenseAttr&) const = default;
};

enum class EnumKind : uint8_t {
  kComparisonDirection,
  kComparisonType,
  kPrecision,
  kFftType,
  kRngAlgorithm,
  kRngDistribution,
  kTranspose,
  kCustomCallApiVersion,
  kResultAccuracyMode,
};
enum class ComparisonDirection : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class ComparisonType : uint8_t { kNoType, kFloat, kTotalOrder, kSigned, kUnsigned };
enum class Precision : uint8_t { kDefault, kHigh, kHighest };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
enum class RngDistribution : uint8_t { kNone, kUniform, kNormal };
enum class Transpose : uint8_t { kInvalid, kNoTranspose, kTranspose, kAdjoint };
enum class CustomCallApiVersion : uint8_t {
  kUnspecified,
  kOriginal,
  kStatusReturning,
  kStatusReturningUnified,
  kTypedFfi
};
enum class ResultAccuracyMode : uint8_t { kDefault, kHighest, kTolerance };

/// One value of one of the enumerations above; the numbers are those of the artifact format.
struct EnumAttr {
  EnumKind kind = EnumKind::kPrecision;
  uint8_t value = 0;
  bool operator==(const EnumAttr&) const = default;
};
/// The word of a value in StableHLO text ("LT", "DEFAULT"), or of a kind ("comparison_direction").
std::string_view enum_word(EnumAttr attr);
std::string_view enum_kind_name(EnumKind kind);
std::optional<EnumKind> enum_kind_from_name(std::string_view name);
/// The value with the name `word`, or nothing.
std::optional<EnumAttr> enum_from_word(EnumKind kind, std::string_view word);
/// The number of values of an enumeration, including those without meaning (RngDistribution 0).
size_t enum_size(EnumKind kind);

struct DotDims {
  I64s lhs_batching, rhs_batching, lhs_contracting, rhs_contracting;
  bool operator==(const DotDims&) const = default;
};
struct GatherDims {
  I64s offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims,
      start_index_map;
  int64_t index_vector_dim = 0;
  bool operator==(const GatherDims&) const = default;
};
struct ScatterDims {
  I64s update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  bool operator==(const ScatterDims&) const = default;
};
struct ConvDims {
  int64_t input_batch = 0, input_feature = 0;
  I64s input_spatial;
  int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  I64s kernel_spatial;
  int64_t output_batch = 0, output_feature = 0;
  I64s output_spatial;
  bool operator==(const ConvDims&) const = default;
};
struct ChannelHandle {
  int64_t handle = 0;
  int64_t type = 0;
  bool operator==(const ChannelHandle&) const = default;
};
/// A precision type is an element type or, for tf32, which is not an element type, absent with
/// is_tf32 set.
struct PrecisionType {
  ElementType type = ElementType::kF32;
  bool is_tf32 = false;
  bool operator==(const PrecisionType&) const = default;
};
struct DotAlgorithm {
  PrecisionType lhs_precision, rhs_precision, accumulation;
  int64_t lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1;
  bool allow_imprecise_accumulation = false;
  bool operator==(const DotAlgorithm&) const = default;
};
struct ResultAccuracy {
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  ResultAccuracyMode mode = ResultAccuracyMode::kDefault;
  bool operator==(const ResultAccuracy&) const = default;
};
struct OutputOperandAlias {
  I64s output_tuple_indices;
  int64_t operand_index = 0;
  I64s operand_tuple_indices;
  bool operator==(const OutputOperandAlias&) const = default;
};
/// chlo.ragged_dot: the ragged dimensions, and the dimensions that number the groups.
struct RaggedDotDims {
  DotDims dot;
  I64s lhs_ragged, rhs_group;
  bool operator==(const RaggedDotDims&) const = default;
};

using ArrayAttr = std::vector<Attribute>;
/// Sorted by key.
using Dict = std::vector<std::pair<std::string, Attribute>>;

/// Shared immutable storage of a large alternative; compared by content.
template <class T>
class Boxed {
 public:
  Boxed() : value_(std::make_shared<const T>()) {}
  /*implicit*/ Boxed(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  bool operator==(const Boxed& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
  }

 private:
  std::shared_ptr<const T> value_;
};

namespace detail {
template <class T, class Variant>
inline constexpr bool kIsAlternative = false;
template <class T, class... Ts>
inline constexpr bool kIsAlternative<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);
}  // namespace detail

class Attribute {
 public:
  using Variant =
      std::variant<Unit, bool, IntegerAttr, FloatAttr, std::string, SymbolAttr, OpaqueAttr,
                   EnumAttr, I64s, BoolsAttr, ChannelHandle, Boxed<I64Matrix>, Boxed<DenseAttr>,
                   Boxed<Type>, Boxed<DotDims>, Boxed<GatherDims>, Boxed<ScatterDims>,
                   Boxed<ConvDims>, Boxed<DotAlgorithm>, Boxed<ResultAccuracy>,
                   Boxed<OutputOperandAlias>, Boxed<RaggedDotDims>, Boxed<ArrayAttr>, Boxed<Dict>>;

  Attribute() = default;
  template <class T>
    requires detail::kIsAlternative<T, Variant>
  /*implicit*/ Attribute(T value) : value_(std::move(value)) {}
  template <class T>
    requires detail::kIsAlternative<Boxed<T>, Variant>
  /*implicit*/ Attribute(T value) : value_(Boxed<T>(std::move(value))) {}
  /*implicit*/ Attribute(int64_t value) : value_(IntegerAttr{value, ElementType::kS64}) {}
  /*implicit*/ Attribute(const char* text) : value_(std::string(text)) {}

  /// The alternative T (boxed or not), or null if the attribute holds another one.
  template <class T>
  const T* get() const {
    if constexpr (detail::kIsAlternative<T, Variant>) {
      return std::get_if<T>(&value_);
    } else {
      const auto* boxed = std::get_if<Boxed<T>>(&value_);
      return boxed ? &**boxed : nullptr;
    }
  }
  const Variant& value() const { return value_; }

  bool operator==(const Attribute&) const = default;

 private:
  Variant value_;
};

/// The value of `key`, or null.
const Attribute* find(const Dict& dict, std::string_view key);
/// Inserts or replaces, keeping the order.
void insert(Dict& dict, std::string key, Attribute value);

}  // namespace tenon::hlo
