#include "hlo/types/attribute.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::hlo {
namespace {

using enum ElementType;

TEST(Attribute, HoldsOneAlternative) {
  const Attribute number(int64_t{5});
  EXPECT_EQ(number.get<IntegerAttr>()->value, 5);
  EXPECT_EQ(number.get<bool>(), nullptr);
  EXPECT_EQ(Attribute("x").get<std::string>()->size(), 1u);
  EXPECT_NE(Attribute().get<Unit>(), nullptr);
  EXPECT_EQ(Attribute(DotDims{{0}, {1}, {}, {}}).get<DotDims>()->rhs_batching, I64s{1});
}

TEST(Attribute, BoxedAlternativesCompareByContent) {
  EXPECT_EQ(Attribute(I64Matrix{1, 2, {3, 4}}), Attribute(I64Matrix{1, 2, {3, 4}}));
  EXPECT_NE(Attribute(I64Matrix{1, 2, {3, 4}}), Attribute(I64Matrix{2, 1, {3, 4}}));
  const Attribute shared(ArrayAttr{Attribute(int64_t{1})});
  const Attribute copy = shared;  // NOLINT(performance-unnecessary-copy-initialization): the point
  EXPECT_EQ(copy.get<ArrayAttr>(), shared.get<ArrayAttr>());
}

TEST(Attribute, IntegersOfOtherTypesDiffer) {
  EXPECT_NE(Attribute(IntegerAttr{1, kS32}), Attribute(int64_t{1}));
}

TEST(Attribute, FloatsCompareByBits) {
  EXPECT_EQ(Attribute(FloatAttr::of(kF32, std::nan(""))),
            Attribute(FloatAttr::of(kF32, std::nan(""))));
  EXPECT_NE(Attribute(FloatAttr::of(kF32, 0.0)), Attribute(FloatAttr::of(kF32, -0.0)));
  EXPECT_EQ(FloatAttr::of(kBF16, 1.0).bits, 0x3F80u);
  EXPECT_EQ(FloatAttr::of(kF16, 0.1).value(), 0x1.998p-4);
}

TEST(DenseAttr, EqualElementsAreKeptOnce) {
  const Literal five = Literal::scalar(kF32, 5);
  const DenseAttr dense = DenseAttr::of(five.splat_to(Shape(kF32, {2, 3})));
  EXPECT_TRUE(dense.is_splat());
  EXPECT_EQ(dense, DenseAttr::splat(Shape(kF32, {2, 3}), five));
  EXPECT_EQ(dense.expanded().to_string(), "[[5, 5, 5], [5, 5, 5]]");
}

TEST(DenseAttr, ScalarsAndEmptyArraysAreNoSplats) {
  EXPECT_FALSE(DenseAttr::of(Literal::scalar(kF32, 5)).is_splat());
  const DenseAttr empty = DenseAttr::splat(Shape(kF32, {0}), Literal::scalar(kF32, 5));
  EXPECT_FALSE(empty.is_splat());
  EXPECT_EQ(empty, DenseAttr::of(Literal(Shape(kF32, {0}))));
  EXPECT_EQ(empty.expanded().element_count(), 0);
}

TEST(Enums, EveryWordNamesItsValue) {
  for (int k = 0; k <= static_cast<int>(EnumKind::kResultAccuracyMode); ++k) {
    const auto kind = static_cast<EnumKind>(k);
    EXPECT_EQ(enum_kind_from_name(enum_kind_name(kind)), kind);
    for (size_t v = 0; v < enum_size(kind); ++v) {
      const EnumAttr attr{kind, static_cast<uint8_t>(v)};
      if (enum_word(attr).empty()) continue;  // a value without meaning
      EXPECT_EQ(enum_from_word(kind, enum_word(attr)), attr);
    }
    EXPECT_EQ(enum_from_word(kind, ""), std::nullopt);
    EXPECT_EQ(enum_from_word(kind, "NO_SUCH_WORD"), std::nullopt);
    EXPECT_EQ(enum_word({kind, 200}), "?");
  }
  EXPECT_EQ(enum_kind_from_name("no_kind"), std::nullopt);
}

TEST(Enums, NumbersAreThoseOfTheArtifact) {
  EXPECT_EQ(enum_from_word(EnumKind::kComparisonDirection, "LT")->value, 5);
  EXPECT_EQ(enum_from_word(EnumKind::kRngDistribution, "UNIFORM")->value, 1);
  EXPECT_EQ(enum_from_word(EnumKind::kTranspose, "NO_TRANSPOSE")->value, 1);
  EXPECT_EQ(enum_from_word(EnumKind::kCustomCallApiVersion, "API_VERSION_TYPED_FFI")->value, 4);
}

TEST(Dict, IsSortedAndReplaces) {
  Dict dict;
  insert(dict, "b", int64_t{1});
  insert(dict, "a", int64_t{2});
  insert(dict, "b", int64_t{3});
  ASSERT_EQ(dict.size(), 2u);
  EXPECT_EQ(dict[0].first, "a");
  EXPECT_EQ(find(dict, "b")->get<IntegerAttr>()->value, 3);
  EXPECT_EQ(find(dict, "c"), nullptr);
}

}  // namespace
}  // namespace tenon::hlo
