// core/types/: data: element types, shapes, literals, `.npy`.
//
// The element types of Tenon, declared once.
//
// A row of kElementTypes has all data about a type: its names, its width, how it is stored, and for
// a floating-point type its format. To add a type, add an enumerator and a row.
//
// Storage: every element takes storage_bytes() whole bytes, little-endian; pred is one byte 0 or 1,
// integers below 8 bits are sign- or zero-extended to one byte, floats below 8 bits take the low
// bits of one byte. A buffer may be packed; a type never is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tenon {

enum class ElementType : uint8_t {
  kPred,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kBF16,
  kF16,
  kF32,
  kF64,
  kC64,
  kC128,
};
inline constexpr size_t kElementTypeCount = static_cast<size_t>(ElementType::kC128) + 1;

enum class ElementKind : uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex };

/// The meaning of the highest encodings of a float format.
enum class FloatSpecials : uint8_t {
  kIeee,          ///< Infinities and NaNs, as in IEEE 754.
  kNanOnly,       ///< "FN": no infinity, NaN is all ones below the sign; overflow gives NaN.
  kUnsignedZero,  ///< "FNUZ": no infinity, no -0, the encoding of -0 is the one NaN; overflow gives
                  ///< NaN.
  kFinite,        ///< Neither infinity nor NaN; overflow saturates, NaN becomes -0.
  kExponentOnly,  ///< f8E8M0FNU: a power of two without sign or zero, all ones is NaN.
};

/// A binary floating-point format: value = (-1)^s * 1.m * 2^(e - bias).
struct FloatFormat {
  uint8_t exponent_bits;
  uint8_t mantissa_bits;  ///< Without the hidden bit.
  int16_t bias;
  FloatSpecials specials;
};

struct ElementTypeInfo {
  ElementType type;
  std::string_view name;       ///< In HLO text and messages: "f32", "s8", "pred".
  std::string_view mlir_name;  ///< In StableHLO text: "f32", "i8", "i1", "complex<f32>".
  ElementKind kind;
  uint8_t bits;           ///< Width of a value; of a complex value, of both parts.
  uint8_t storage_bytes;  ///< Bytes of one element in a Literal.
  FloatFormat format;     ///< Meaningful for kFloat only.
};

/// The row for `type`.
const ElementTypeInfo& element_type_info(ElementType type);
/// All rows, in the order of the enumerators.
std::span<const ElementTypeInfo> element_types();

/// The type with the name `name` in HLO text, or nothing.
std::optional<ElementType> element_type_from_name(std::string_view name);
/// The type with the name `name` in StableHLO text ("si8" and "i8" are both s8, "index" is s64), or
/// nothing.
std::optional<ElementType> element_type_from_mlir_name(std::string_view name);

inline std::string_view name_of(ElementType type) { return element_type_info(type).name; }
inline int bit_width(ElementType type) { return element_type_info(type).bits; }
inline size_t storage_bytes(ElementType type) { return element_type_info(type).storage_bytes; }

inline bool is_pred(ElementType type) { return type == ElementType::kPred; }
inline bool is_signed_integer(ElementType type) {
  return element_type_info(type).kind == ElementKind::kSigned;
}
inline bool is_unsigned_integer(ElementType type) {
  return element_type_info(type).kind == ElementKind::kUnsigned;
}
inline bool is_integer(ElementType type) {
  return is_signed_integer(type) || is_unsigned_integer(type);
}
inline bool is_float(ElementType type) {
  return element_type_info(type).kind == ElementKind::kFloat;
}
inline bool is_complex(ElementType type) {
  return element_type_info(type).kind == ElementKind::kComplex;
}
/// f32 for c64, f64 for c128; for any other type, the type itself.
ElementType complex_part(ElementType type);
/// The integer type of 2, 4, 8, 16, 32 or 64 bits, or nothing.
std::optional<ElementType> integer_of_width(int bits, bool is_signed);
/// c64 for f32, c128 for f64; nothing for other types.
std::optional<ElementType> complex_of(ElementType part);

}  // namespace tenon
