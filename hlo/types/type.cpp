#include "hlo/types/type.h"

#include "core/types/float_convert.h"
#include "core/types/literal.h"

namespace tenon::hlo {

Type Type::quantized_tensor(Dims dims, QuantizedType quantized) {
  Type type(Shape(quantized.storage, std::move(dims)));
  type.quantized_ = std::make_shared<const QuantizedType>(std::move(quantized));
  return type;
}

Type Type::buffer(Shape shape) {
  Type type(std::move(shape));
  type.kind_ = TypeKind::kBuffer;
  return type;
}

Type Type::of_kind(TypeKind kind, std::vector<Type> elements) {
  Type type;
  type.kind_ = kind;
  if (!elements.empty()) {
    type.elements_ = std::make_shared<const std::vector<Type>>(std::move(elements));
  }
  return type;
}

Type Type::function(std::vector<Type> inputs, std::vector<Type> results) {
  Type type = of_kind(TypeKind::kFunction, std::move(inputs));
  type.results_ = std::make_shared<const std::vector<Type>>(std::move(results));
  return type;
}

const std::vector<Type>& Type::elements() const {
  static const std::vector<Type> kEmpty;
  return elements_ ? *elements_ : kEmpty;
}

const std::vector<Type>& Type::function_results() const {
  static const std::vector<Type> kEmpty;
  return results_ ? *results_ : kEmpty;
}

Type Type::with_dims(Dims dims) const {
  Type type = *this;
  type.shape_ = shape_.with_dims(std::move(dims));
  return type;
}

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_ || !(shape_ == other.shape_)) return false;
  if ((quantized_ == nullptr) != (other.quantized_ == nullptr)) return false;
  if (quantized_ && !(*quantized_ == *other.quantized_)) return false;
  return elements() == other.elements() && function_results() == other.function_results();
}

namespace {

// "0.1:-30" for each index of the axis, or for the tensor.
std::string quantization_to_string(const QuantizedType& q, bool mlir) {
  const auto name = [&](ElementType type) {
    if (!mlir) return std::string(name_of(type));
    return is_unsigned_integer(type) ? fmt::format("u{}", bit_width(type))
                                     : std::string(element_type_info(type).mlir_name);
  };
  std::string text = name(q.storage);
  if (q.storage_min != integer_min(q.storage) || q.storage_max != integer_max(q.storage)) {
    text += fmt::format("<{}:{}>", q.storage_min, q.storage_max);
  }
  text += fmt::format(":{}", name(q.expressed));
  const auto parameter = [&](size_t i) {
    std::string scale = float_to_string(ElementType::kF64, q.scales[i]);
    // A scale is read as a decimal number, so it needs a point before its exponent.
    if (scale.find('.') == std::string::npos) {
      const size_t exponent = scale.find('e');
      scale.insert(exponent == std::string::npos ? scale.size() : exponent, ".0");
    }
    return q.zero_points[i] == 0 ? scale : fmt::format("{}:{}", scale, q.zero_points[i]);
  };
  if (!q.is_per_axis()) return fmt::format("{}, {}", text, parameter(0));
  text += fmt::format(":{}, {{", q.axis);
  for (size_t i = 0; i < q.scales.size(); ++i) {
    if (i != 0) text += ", ";
    text += parameter(i);
  }
  return text + "}";
}

std::string join(const std::vector<Type>& types, std::string (Type::*print)() const) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0) text += ", ";
    text += (types[i].*print)();
  }
  return text;
}

std::string mlir_array(const Shape& shape, const std::string& element) {
  std::string text;
  for (int64_t dim : shape.dims()) {
    text += dim == kDynamic ? "?x" : fmt::format("{}x", dim);
  }
  text += element;
  if (!shape.bounds().empty()) {
    text += fmt::format(", #stablehlo.bounds<{}>", dims_to_string(shape.bounds(), ", "));
  }
  return text;
}

}  // namespace

std::string Type::to_string() const {
  switch (kind_) {
    case TypeKind::kTensor: {
      if (!quantized_) return shape_.to_string();
      const std::string plain = shape_.to_string();
      return fmt::format("q<{}>{}", quantization_to_string(*quantized_, false),
                         plain.substr(plain.find('[')));
    }
    case TypeKind::kToken:
      return "token";
    case TypeKind::kTuple:
      return fmt::format("tuple<{}>", join(elements(), &Type::to_string));
    case TypeKind::kFuture:
      return fmt::format("future<{}>", join(elements(), &Type::to_string));
    case TypeKind::kBuffer:
      return fmt::format("buffer<{}>", shape_.to_string());
    case TypeKind::kNone:
      return "none";
    case TypeKind::kFunction:
      return fmt::format("function<({}) -> ({})>", join(elements(), &Type::to_string),
                         join(function_results(), &Type::to_string));
  }
  return "?";
}

std::string Type::to_mlir() const {
  switch (kind_) {
    case TypeKind::kTensor: {
      const std::string element =
          quantized_ ? fmt::format("!quant.uniform<{}>", quantization_to_string(*quantized_, true))
                     : std::string(element_type_info(element_type()).mlir_name);
      return fmt::format("tensor<{}>", mlir_array(shape_, element));
    }
    case TypeKind::kToken:
      return "!stablehlo.token";
    case TypeKind::kTuple:
      return fmt::format("tuple<{}>", join(elements(), &Type::to_mlir));
    case TypeKind::kFuture:
      return fmt::format("!stablehlo.future<{}>", join(elements(), &Type::to_mlir));
    case TypeKind::kBuffer:
      return fmt::format(
          "memref<{}>",
          mlir_array(shape_, std::string(element_type_info(element_type()).mlir_name)));
    case TypeKind::kNone:
      return "none";
    case TypeKind::kFunction: {
      const std::string results = join(function_results(), &Type::to_mlir);
      return fmt::format(
          fmt::runtime(function_results().size() == 1 ? "({}) -> {}" : "({}) -> ({})"),
          join(elements(), &Type::to_mlir), results);
    }
  }
  return "?";
}

std::string types_to_string(const std::vector<Type>& types) {
  return join(types, &Type::to_string);
}

bool compatible(const Type& a, const Type& b) {
  if (a.kind() != b.kind()) return false;
  if (a.kind() != TypeKind::kTensor && a.kind() != TypeKind::kBuffer) {
    if (a.elements().size() != b.elements().size()) return false;
    for (size_t i = 0; i < a.elements().size(); ++i) {
      if (!compatible(a.elements()[i], b.elements()[i])) return false;
    }
    return a.function_results() == b.function_results();
  }
  if (a.element_type() != b.element_type() || a.rank() != b.rank()) return false;
  if (a.is_quantized() != b.is_quantized()) return false;
  if (a.is_quantized() && !(*a.quantized() == *b.quantized())) return false;
  for (size_t i = 0; i < a.dims().size(); ++i) {
    const int64_t x = a.dims()[i];
    const int64_t y = b.dims()[i];
    if (x == kDynamic && y == kDynamic) continue;
    if (x == kDynamic || y == kDynamic) {
      const Shape& unknown = x == kDynamic ? a.shape() : b.shape();
      const int64_t known = x == kDynamic ? y : x;
      if (!unknown.bounds().empty() && unknown.bounds()[i] != kDynamic &&
          known > unknown.bounds()[i]) {
        return false;
      }
      continue;
    }
    if (x != y) return false;
  }
  return true;
}

}  // namespace tenon::hlo
