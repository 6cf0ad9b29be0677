#include "core/types/element_type.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tenon {
namespace {

TEST(ElementType, EveryNameNamesItsRow) {
  std::set<std::string_view> names;
  for (const ElementTypeInfo& row : element_types()) {
    EXPECT_EQ(element_type_from_name(row.name), row.type) << row.name;
    EXPECT_EQ(element_type_from_mlir_name(row.mlir_name), row.type) << row.mlir_name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_EQ(names.size(), kElementTypeCount);
}

TEST(ElementType, SignedAndIndexSpellingsOfMlir) {
  EXPECT_EQ(element_type_from_mlir_name("si8"), ElementType::kS8);
  EXPECT_EQ(element_type_from_mlir_name("index"), ElementType::kS64);
  EXPECT_EQ(element_type_from_mlir_name("i1"), ElementType::kPred);
}

TEST(ElementType, UnknownNamesNameNothing) {
  for (const char* name : {"", "f31", "s", "si7", "uif32", "F32", "ui"}) {
    EXPECT_EQ(element_type_from_name(name), std::nullopt) << name;
    EXPECT_EQ(element_type_from_mlir_name(name), std::nullopt) << name;
  }
}

TEST(ElementType, StorageIsWholeBytes) {
  for (const ElementTypeInfo& row : element_types()) {
    EXPECT_EQ(row.storage_bytes, (row.bits + 7) / 8) << row.name;
  }
}

TEST(ElementType, FloatFormatsFillTheirWidth) {
  for (const ElementTypeInfo& row : element_types()) {
    if (row.kind != ElementKind::kFloat) continue;
    const int sign = row.format.specials == FloatSpecials::kExponentOnly ? 0 : 1;
    EXPECT_EQ(sign + row.format.exponent_bits + row.format.mantissa_bits, row.bits) << row.name;
  }
}

TEST(ElementType, KindsAreDisjoint) {
  for (const ElementTypeInfo& row : element_types()) {
    EXPECT_EQ(is_pred(row.type) + is_signed_integer(row.type) + is_unsigned_integer(row.type) +
                  is_float(row.type) + is_complex(row.type),
              1)
        << row.name;
    EXPECT_EQ(is_integer(row.type), is_signed_integer(row.type) || is_unsigned_integer(row.type));
  }
}

TEST(ElementType, ComplexAndItsPart) {
  EXPECT_EQ(complex_part(ElementType::kC64), ElementType::kF32);
  EXPECT_EQ(complex_part(ElementType::kC128), ElementType::kF64);
  EXPECT_EQ(complex_part(ElementType::kS8), ElementType::kS8);
  EXPECT_EQ(complex_of(ElementType::kF32), ElementType::kC64);
  EXPECT_EQ(complex_of(ElementType::kF64), ElementType::kC128);
  EXPECT_EQ(complex_of(ElementType::kF16), std::nullopt);
}

}  // namespace
}  // namespace tenon
