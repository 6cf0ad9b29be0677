// hlo/types/: types, attributes and locations of the language.
//
// Types of the values of a Module.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/types/shape.h"

namespace tenon::hlo {

/// Parameters of a quantized element type (StableHLO specification, "Quantization"): a value q of
/// the storage type represents (q - zero_point) * scale in the expressed type.
struct QuantizedType {
  ElementType storage = ElementType::kS8;
  ElementType expressed = ElementType::kF32;
  int64_t storage_min = -128;
  int64_t storage_max = 127;
  /// Quantization dimension, or -1 for one scale per tensor.
  int64_t axis = -1;
  std::vector<double> scales{1.0};
  std::vector<int64_t> zero_points{0};

  bool is_per_axis() const { return axis >= 0; }
  bool operator==(const QuantizedType&) const = default;
};

enum class TypeKind : uint8_t {
  kTensor,   ///< An array; quantized when `quantized()` is set.
  kToken,    ///< Orders side effects.
  kTuple,    ///< A tuple of other types; only at the interface of old programs.
  kFuture,   ///< The result of async_start: the types that it will produce.
  kBuffer,   ///< A memref of a custom call on buffers.
  kNone,     ///< "none", in attributes.
  kFunction  ///< In attributes: `elements` holds the inputs, `results` the results.
};

/// A value type: cheap to copy, compared by content.
class Type {
 public:
  Type() = default;
  /*implicit*/ Type(Shape shape) : shape_(std::move(shape)) {}
  static Type tensor(ElementType element_type, Dims dims) {
    return Type(Shape(element_type, std::move(dims)));
  }
  /// The shape's element type is the storage type.
  static Type quantized_tensor(Dims dims, QuantizedType quantized);
  static Type token() { return of_kind(TypeKind::kToken, {}); }
  static Type none() { return of_kind(TypeKind::kNone, {}); }
  static Type tuple(std::vector<Type> elements) {
    return of_kind(TypeKind::kTuple, std::move(elements));
  }
  static Type future(std::vector<Type> elements) {
    return of_kind(TypeKind::kFuture, std::move(elements));
  }
  static Type buffer(Shape shape);
  static Type function(std::vector<Type> inputs, std::vector<Type> results);

  TypeKind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == TypeKind::kTensor; }
  bool is_token() const { return kind_ == TypeKind::kToken; }
  bool is_tuple() const { return kind_ == TypeKind::kTuple; }

  /// The shape of a tensor or buffer. The element type of a quantized tensor is the storage type.
  const Shape& shape() const { return shape_; }
  Shape& mutable_shape() { return shape_; }
  ElementType element_type() const { return shape_.element_type(); }
  const Dims& dims() const { return shape_.dims(); }
  int64_t rank() const { return shape_.rank(); }
  bool is_quantized() const { return quantized_ != nullptr; }
  /// Null unless quantized.
  const QuantizedType* quantized() const { return quantized_.get(); }
  /// The elements of a tuple or future; the inputs of a function.
  const std::vector<Type>& elements() const;
  const std::vector<Type>& function_results() const;

  /// The same type with other dimensions (a tensor).
  Type with_dims(Dims dims) const;
  /// The same dimensions with a plain element type.
  Type with_element_type(ElementType type) const { return Type(shape_.with_element_type(type)); }

  /// As in HLO text: "f32[2,3]", "token", "tuple<f32[], token>", "q<s8:f32, 0.1:-3>[2]".
  std::string to_string() const;
  /// As in StableHLO text: "tensor<2x3xf32>", "!stablehlo.token".
  std::string to_mlir() const;

  bool operator==(const Type& other) const;

 private:
  static Type of_kind(TypeKind kind, std::vector<Type> elements);

  TypeKind kind_ = TypeKind::kTensor;
  Shape shape_;
  std::shared_ptr<const QuantizedType> quantized_;
  std::shared_ptr<const std::vector<Type>> elements_;
  std::shared_ptr<const std::vector<Type>> results_;
};

/// "tensor<2xf32>, tensor<f32>" etc. with `to_string` of each type.
std::string types_to_string(const std::vector<Type>& types);

/// Whether two types can be types of the same value: equal except for dimensions that one of them
/// does not know (StableHLO: "compatible").
bool compatible(const Type& a, const Type& b);

}  // namespace tenon::hlo
