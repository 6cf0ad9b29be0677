#include "core/types/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

using enum ElementType;

TEST(Literal, DefaultIsFalse) {
  EXPECT_EQ(Literal().shape(), Shape(kPred, {}));
  EXPECT_EQ(Literal().get_integer(0), 0);
}

TEST(Literal, CopiesShareUntilOneChanges) {
  Literal a(Shape(kS32, {2}));
  Literal b = a;
  EXPECT_EQ(a.data().data(), b.data().data());
  b.set_integer(0, 7);
  EXPECT_EQ(a.get_integer(0), 0);
  EXPECT_EQ(b.get_integer(0), 7);
  EXPECT_FALSE(a == b);
}

TEST(Literal, FromBytesWantsTheExactSize) {
  const std::byte bytes[8] = {};
  EXPECT_TRUE(Literal::from_bytes(Shape(kF32, {2}), bytes));
  EXPECT_EQ(Literal::from_bytes(Shape(kF32, {3}), bytes).error().message(),
            "8 bytes given for f32[3], which takes 12");
}

TEST(Literal, ScalarsConvertAsConvertDoes) {
  EXPECT_EQ(Literal::scalar(kS8, 300).get_integer(0), 127);
  EXPECT_EQ(Literal::scalar(kU8, -3.5).get_integer(0), 0);
  EXPECT_EQ(Literal::scalar(kS32, std::nan("")).get_integer(0), 0);
  EXPECT_EQ(Literal::scalar(kPred, 0.3).get_integer(0), 1);
  EXPECT_EQ(Literal::scalar(kPred, std::nan("")).get_integer(0), 1);
  EXPECT_EQ(Literal::scalar(kF16, 1e6).get_double(0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Literal::scalar(kC64, 1.5).get_complex(0), std::complex<double>(1.5, 0));
}

TEST(Literal, IntegerScalars) {
  EXPECT_EQ(Literal::scalar_integer(kS4, 15).get_integer(0), -1);
  EXPECT_EQ(Literal::scalar_integer(kPred, 2).get_integer(0), 1);
  EXPECT_EQ(
      Literal::scalar_integer(kF32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1).get_double(0),
      0x1p60 + 0x1p37);
  EXPECT_EQ(Literal::scalar_integer(kC128, 3).get_complex(0), std::complex<double>(3, 0));
}

TEST(Literal, NarrowIntegersAreExtendedInTheirByte) {
  Literal s4(Shape(kS4, {1}));
  s4.set_integer(0, -3);
  EXPECT_EQ(s4.get<uint8_t>(0), 0xFD);
  Literal u2(Shape(kU2, {1}));
  u2.set_integer(0, 7);
  EXPECT_EQ(u2.get<uint8_t>(0), 3);
}

TEST(Literal, U64KeepsItsBits) {
  Literal x(Shape(kU64, {}));
  x.set_integer(0, -1);
  EXPECT_EQ(x.get_double(0), 0x1p64);
  EXPECT_EQ(x.element_to_string(0), "18446744073709551615");
}

TEST(Literal, ReshapedSharesBytes) {
  const int64_t values[] = {1, 2, 3, 4};
  const Literal x = Literal::from_i64s(values);
  const Literal y = x.reshaped({2, 2});
  EXPECT_EQ(y.to_string(), "[[1, 2], [3, 4]]");
  EXPECT_EQ(x.data().data(), y.data().data());
}

TEST(Literal, SplatAndItsRecognition) {
  const Literal x = Literal::scalar(kF32, 2.5).splat_to(Shape(kF32, {2, 3}));
  EXPECT_TRUE(x.is_splat());
  EXPECT_EQ(x.to_string(), "[[2.5, 2.5, 2.5], [2.5, 2.5, 2.5]]");
  EXPECT_FALSE(Literal(Shape(kF32, {0})).is_splat());
  // +0 and -0 are different bytes.
  Literal zeros(Shape(kF32, {2}));
  zeros.set_double(1, -0.0);
  EXPECT_FALSE(zeros.is_splat());
}

TEST(Literal, DoublesBeyondAnIntegerAreItsEnds) {
  const auto stored = [](ElementType type, double value) {
    Literal x(Shape(type, {1}));
    x.set_double(0, value);
    return x.to_string();
  };
  EXPECT_EQ(stored(ElementType::kS64, 0x1p63), "[9223372036854775807]");
  EXPECT_EQ(stored(ElementType::kS64, -1e300), "[-9223372036854775808]");
  EXPECT_EQ(stored(ElementType::kU64, 0x1p64), "[18446744073709551615]");
  EXPECT_EQ(stored(ElementType::kU64, 0x1p63), "[9223372036854775808]");
  EXPECT_EQ(stored(ElementType::kS64, INFINITY), "[9223372036854775807]");
  EXPECT_EQ(stored(ElementType::kS64, NAN), "[0]");
}

TEST(Literal, DoublesOfEveryRealType) {
  for (const auto& [type, value] :
       std::vector<std::pair<ElementType, double>>{{ElementType::kPred, 1},
                                                   {ElementType::kS4, -3},
                                                   {ElementType::kU8, 200},
                                                   {ElementType::kS64, -0x1p62},
                                                   {ElementType::kU64, 0x1.8p63},
                                                   {ElementType::kF8E4M3FN, 0.375},
                                                   {ElementType::kF64, 0.1}}) {
    Literal x(Shape(type, {1}));
    x.set_double(0, value);
    EXPECT_EQ(x.get_double(0), value) << name_of(type);
  }
}

TEST(Literal, TextOfElements) {
  struct Case {
    Literal literal;
    const char* text;
  };
  Literal complex(Shape(kC64, {}));
  complex.set_complex(0, {0.1, -std::numeric_limits<double>::infinity()});
  const Case cases[] = {
      {Literal::scalar(kPred, 1), "true"},          {Literal::scalar(kS8, -5), "-5"},
      {Literal::scalar(kF32, 0.1), "0.1"},          {Literal::scalar(kF64, 0.1), "0.1"},
      {Literal::scalar(kF16, 0.1), "0.1"},          {Literal::scalar(kF8E5M2, 0.1), "0.09375"},
      {Literal::scalar(kF32, -0.0), "-0"},          {Literal::scalar(kF32, 1e30), "1e+30"},
      {Literal::scalar(kF16, std::nan("")), "nan"}, {complex, "(0.1, -inf)"}};
  for (const Case& c : cases) EXPECT_EQ(c.literal.element_to_string(0), c.text);
}

TEST(Literal, FloatTextReadsBackForEveryNarrowCode) {
  for (const ElementTypeInfo& row : element_types()) {
    if (row.kind != ElementKind::kFloat || row.bits > 16) continue;
    Literal x(Shape(row.type, {}));
    for (uint64_t bits = 0; bits < uint64_t{1} << row.bits; bits += row.bits == 16 ? 7 : 1) {
      row.bits == 16 ? x.set(0, static_cast<uint16_t>(bits)) : x.set(0, static_cast<uint8_t>(bits));
      const double value = x.get_double(0);
      if (std::isnan(value)) continue;
      Literal again(Shape(row.type, {}));
      again.set_double(0, std::strtod(x.element_to_string(0).c_str(), nullptr));
      ASSERT_TRUE(again == x) << row.name << " " << x.element_to_string(0);
    }
  }
}

TEST(Literal, LongTextsAreCut) {
  const int64_t values[] = {1, 2, 3, 4};
  EXPECT_EQ(Literal::from_i64s(values).to_string(2), "[1, 2, …]");
  EXPECT_EQ(Literal::from_i64s(values).reshaped({2, 2}).to_string(2), "[[1, 2], …]");
}

TEST(Literal, EmptyArraysHaveATextAndAreEqual) {
  EXPECT_EQ(Literal(Shape(kF32, {2, 0})).to_string(), "[[], []]");
  EXPECT_TRUE(Literal(Shape(kF32, {0})) == Literal(Shape(kF32, {0})));
  EXPECT_FALSE(Literal(Shape(kF32, {0})) == Literal(Shape(kF32, {0, 1})));
}

}  // namespace
}  // namespace tenon
