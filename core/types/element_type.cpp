#include "core/types/element_type.h"

#include <array>

namespace tenon {
namespace {

using enum ElementType;
constexpr auto kSigned = ElementKind::kSigned;
constexpr auto kUnsigned = ElementKind::kUnsigned;
constexpr auto kFloat = ElementKind::kFloat;
constexpr auto kComplex = ElementKind::kComplex;
using enum FloatSpecials;

constexpr FloatFormat kNoFormat{0, 0, 0, kIeee};

constexpr std::array<ElementTypeInfo, kElementTypeCount> kElementTypes = {{
    {ElementType::kPred, "pred", "i1", ElementKind::kPred, 1, 1, kNoFormat},
    {kS2, "s2", "i2", kSigned, 2, 1, kNoFormat},
    {kS4, "s4", "i4", kSigned, 4, 1, kNoFormat},
    {kS8, "s8", "i8", kSigned, 8, 1, kNoFormat},
    {kS16, "s16", "i16", kSigned, 16, 2, kNoFormat},
    {kS32, "s32", "i32", kSigned, 32, 4, kNoFormat},
    {kS64, "s64", "i64", kSigned, 64, 8, kNoFormat},
    {kU2, "u2", "ui2", kUnsigned, 2, 1, kNoFormat},
    {kU4, "u4", "ui4", kUnsigned, 4, 1, kNoFormat},
    {kU8, "u8", "ui8", kUnsigned, 8, 1, kNoFormat},
    {kU16, "u16", "ui16", kUnsigned, 16, 2, kNoFormat},
    {kU32, "u32", "ui32", kUnsigned, 32, 4, kNoFormat},
    {kU64, "u64", "ui64", kUnsigned, 64, 8, kNoFormat},
    {kF4E2M1FN, "f4e2m1fn", "f4E2M1FN", kFloat, 4, 1, {2, 1, 1, kFinite}},
    {kF6E2M3FN, "f6e2m3fn", "f6E2M3FN", kFloat, 6, 1, {2, 3, 1, kFinite}},
    {kF6E3M2FN, "f6e3m2fn", "f6E3M2FN", kFloat, 6, 1, {3, 2, 3, kFinite}},
    {kF8E3M4, "f8e3m4", "f8E3M4", kFloat, 8, 1, {3, 4, 3, kIeee}},
    {kF8E4M3, "f8e4m3", "f8E4M3", kFloat, 8, 1, {4, 3, 7, kIeee}},
    {kF8E4M3FN, "f8e4m3fn", "f8E4M3FN", kFloat, 8, 1, {4, 3, 7, kNanOnly}},
    {kF8E4M3FNUZ, "f8e4m3fnuz", "f8E4M3FNUZ", kFloat, 8, 1, {4, 3, 8, kUnsignedZero}},
    {kF8E4M3B11FNUZ, "f8e4m3b11fnuz", "f8E4M3B11FNUZ", kFloat, 8, 1, {4, 3, 11, kUnsignedZero}},
    {kF8E5M2, "f8e5m2", "f8E5M2", kFloat, 8, 1, {5, 2, 15, kIeee}},
    {kF8E5M2FNUZ, "f8e5m2fnuz", "f8E5M2FNUZ", kFloat, 8, 1, {5, 2, 16, kUnsignedZero}},
    {kF8E8M0FNU, "f8e8m0fnu", "f8E8M0FNU", kFloat, 8, 1, {8, 0, 127, kExponentOnly}},
    {kBF16, "bf16", "bf16", kFloat, 16, 2, {8, 7, 127, kIeee}},
    {kF16, "f16", "f16", kFloat, 16, 2, {5, 10, 15, kIeee}},
    {kF32, "f32", "f32", kFloat, 32, 4, {8, 23, 127, kIeee}},
    {kF64, "f64", "f64", kFloat, 64, 8, {11, 52, 1023, kIeee}},
    {kC64, "c64", "complex<f32>", kComplex, 64, 8, kNoFormat},
    {kC128, "c128", "complex<f64>", kComplex, 128, 16, kNoFormat},
}};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < kElementTypes.size(); ++i) {
    if (static_cast<size_t>(kElementTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "a row stands at the place of its enumerator");

}  // namespace

const ElementTypeInfo& element_type_info(ElementType type) {
  return kElementTypes[static_cast<size_t>(type)];
}

std::span<const ElementTypeInfo> element_types() { return kElementTypes; }

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (const ElementTypeInfo& row : kElementTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<ElementType> element_type_from_mlir_name(std::string_view name) {
  for (const ElementTypeInfo& row : kElementTypes) {
    if (row.mlir_name == name) return row.type;
  }
  if (name == "index") return kS64;
  if (name.starts_with("si")) return element_type_from_mlir_name(name.substr(1));
  return std::nullopt;
}

ElementType complex_part(ElementType type) {
  if (type == kC64) return kF32;
  if (type == kC128) return kF64;
  return type;
}

std::optional<ElementType> integer_of_width(int bits, bool is_signed) {
  switch (bits) {
    case 2:
      return is_signed ? kS2 : kU2;
    case 4:
      return is_signed ? kS4 : kU4;
    case 8:
      return is_signed ? kS8 : kU8;
    case 16:
      return is_signed ? kS16 : kU16;
    case 32:
      return is_signed ? kS32 : kU32;
    case 64:
      return is_signed ? kS64 : kU64;
    default:
      return std::nullopt;
  }
}

std::optional<ElementType> complex_of(ElementType part) {
  if (part == kF32) return kC64;
  if (part == kF64) return kC128;
  return std::nullopt;
}

}  // namespace tenon
