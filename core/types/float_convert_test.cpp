#include "core/types/float_convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tenon {
namespace {

using enum ElementType;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<ElementType> narrow_floats() {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& row : element_types()) {
    if (row.kind == ElementKind::kFloat && row.bits <= 16) types.push_back(row.type);
  }
  return types;
}

class NarrowFloat : public testing::TestWithParam<ElementType> {
 protected:
  const ElementType type = GetParam();
  const FloatFormat format = element_type_info(type).format;
  const uint64_t codes = uint64_t{1} << bit_width(type);
  // Codes below this one are not negative.
  const uint64_t half = format.specials == FloatSpecials::kExponentOnly ? codes : codes / 2;
};
INSTANTIATE_TEST_SUITE_P(All, NarrowFloat, testing::ValuesIn(narrow_floats()),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST_P(NarrowFloat, EncodeOfDecodeIsTheIdentity) {
  int nans = 0;
  for (uint64_t bits = 0; bits < codes; ++bits) {
    const double value = decode_float(type, bits);
    if (std::isnan(value)) {
      ++nans;
      EXPECT_TRUE(std::isnan(decode_float(type, encode_float(type, value)))) << bits;
      continue;
    }
    ASSERT_EQ(encode_float(type, value), bits) << value;
    ASSERT_EQ(encode_float(type, static_cast<Float128>(value)), bits) << value;
    ASSERT_EQ(std::bit_cast<uint64_t>(round_to(type, value)), std::bit_cast<uint64_t>(value));
  }
  EXPECT_EQ(nans != 0, has_nan(type));
}

TEST_P(NarrowFloat, CodesGrowWithTheirValues) {
  for (uint64_t bits = 1; bits < half; ++bits) {
    const double value = decode_float(type, bits);
    if (std::isnan(value)) continue;
    EXPECT_GT(value, decode_float(type, bits - 1)) << bits;
  }
}

TEST_P(NarrowFloat, MidpointsRoundToTheEvenCode) {
  for (uint64_t bits = 0; bits + 1 < half; ++bits) {
    const double low = decode_float(type, bits);
    const double high = decode_float(type, bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double middle = low + (high - low) / 2;
    // A significand of one bit is odd on both sides: the tie goes up.
    const bool up = bits % 2 != 0 || format.specials == FloatSpecials::kExponentOnly;
    const uint64_t even = up ? bits + 1 : bits;
    ASSERT_EQ(encode_float(type, middle), even) << middle;
    ASSERT_EQ(encode_float(type, static_cast<Float128>(middle)), even) << middle;
    ASSERT_EQ(encode_float(type, std::nextafter(middle, 0.0)), bits) << middle;
    ASSERT_EQ(encode_float(type, std::nextafter(middle, kInf)), bits + 1) << middle;
  }
}

TEST_P(NarrowFloat, NegativeNumbersMirrorPositiveOnes) {
  if (format.specials == FloatSpecials::kExponentOnly) return;
  for (uint64_t bits = 1; bits < half; ++bits) {
    const double value = decode_float(type, bits);
    if (std::isnan(value)) continue;
    EXPECT_EQ(encode_float(type, -value), bits + half) << value;
  }
}

TEST_P(NarrowFloat, OnlyTheLowBitsAreRead) {
  for (uint64_t bits = 0; bits < codes; bits += 3) {
    const double value = decode_float(type, bits);
    const double other = decode_float(type, bits | ~(codes - 1));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(other)) << bits;
    } else {
      EXPECT_EQ(value, other) << bits;
    }
  }
}

// --- Overflow, and the encodings of NaN and zero

struct Special {
  ElementType type;
  double value;
  uint64_t bits;
};
class SpecialCodes : public testing::TestWithParam<Special> {};
INSTANTIATE_TEST_SUITE_P(
    Table, SpecialCodes,
    testing::Values(
        // IEEE: overflow from half a unit beyond the greatest finite value.
        Special{kF16, 65519.999, 0x7BFF}, Special{kF16, 65520, 0x7C00}, Special{kF16, -1e6, 0xFC00},
        Special{kF16, kNan, 0x7E00}, Special{kF16, -0.0, 0x8000}, Special{kF16, 0x1p-25, 0},
        Special{kBF16, 3.4e38, 0x7F80}, Special{kBF16, 3.38e38, 0x7F7E},
        Special{kBF16, kNan, 0x7FC0}, Special{kF8E5M2, 57344, 0x7B}, Special{kF8E5M2, 61440, 0x7C},
        Special{kF8E5M2, -kInf, 0xFC}, Special{kF8E5M2, kNan, 0x7E}, Special{kF8E4M3, 240, 0x77},
        Special{kF8E4M3, 248, 0x78}, Special{kF8E3M4, 15.5, 0x6F}, Special{kF8E3M4, 15.75, 0x70},
        // FN: no infinity; the tie above 448 rounds to the even 448, larger values give NaN.
        Special{kF8E4M3FN, 448, 0x7E}, Special{kF8E4M3FN, 464, 0x7E},
        Special{kF8E4M3FN, 464.001, 0x7F}, Special{kF8E4M3FN, kInf, 0x7F},
        Special{kF8E4M3FN, -kInf, 0xFF}, Special{kF8E4M3FN, kNan, 0x7F},
        Special{kF8E4M3FN, -kNan, 0xFF}, Special{kF8E4M3FN, -0.0, 0x80},
        // FNUZ: one zero, one NaN.
        Special{kF8E4M3FNUZ, 240, 0x7F}, Special{kF8E4M3FNUZ, 247.9, 0x7F},
        Special{kF8E4M3FNUZ, 248, 0x80}, Special{kF8E4M3FNUZ, -0.0, 0},
        Special{kF8E4M3FNUZ, kNan, 0x80}, Special{kF8E4M3FNUZ, -kInf, 0x80},
        Special{kF8E4M3FNUZ, -1e-9, 0}, Special{kF8E5M2FNUZ, 57344, 0x7F},
        Special{kF8E5M2FNUZ, 1e6, 0x80}, Special{kF8E4M3B11FNUZ, 30, 0x7F},
        Special{kF8E4M3B11FNUZ, 31, 0x80},
        // Finite: saturation; NaN becomes -0.
        Special{kF4E2M1FN, 6, 0x7}, Special{kF4E2M1FN, 100, 0x7}, Special{kF4E2M1FN, -kInf, 0xF},
        Special{kF4E2M1FN, kNan, 0x8}, Special{kF4E2M1FN, -kNan, 0x8},
        Special{kF4E2M1FN, -0.0, 0x8}, Special{kF4E2M1FN, 0.25, 0}, Special{kF6E2M3FN, 7.5, 0x1F},
        Special{kF6E2M3FN, 8, 0x1F}, Special{kF6E2M3FN, -9, 0x3F}, Special{kF6E3M2FN, 28, 0x1F},
        Special{kF6E3M2FN, kInf, 0x1F}, Special{kF6E3M2FN, kNan, 0x20},
        // Powers of two.
        Special{kF8E8M0FNU, 1, 127}, Special{kF8E8M0FNU, 0x1p-127, 0},
        Special{kF8E8M0FNU, 0x1p127, 254}, Special{kF8E8M0FNU, 0, 0}, Special{kF8E8M0FNU, -1, 0xFF},
        Special{kF8E8M0FNU, 0x1p128, 0xFF}, Special{kF8E8M0FNU, kNan, 0xFF},
        Special{kF8E8M0FNU, kInf, 0xFF}, Special{kF8E8M0FNU, 1.49, 127},
        Special{kF8E8M0FNU, 1.5, 128}, Special{kF8E8M0FNU, 3, 129},
        Special{kF8E8M0FNU, 0x1p-200, 0}));

TEST_P(SpecialCodes, FollowTheFormat) {
  const auto& [type, value, bits] = GetParam();
  EXPECT_EQ(encode_float(type, value), bits) << name_of(type) << " " << value;
  EXPECT_EQ(encode_float(type, static_cast<Float128>(value)), bits)
      << name_of(type) << " " << value;
}

TEST(FloatConvert, GreatestFiniteValues) {
  const std::pair<ElementType, double> cases[] = {{kF4E2M1FN, 6},
                                                  {kF6E2M3FN, 7.5},
                                                  {kF6E3M2FN, 28},
                                                  {kF8E3M4, 15.5},
                                                  {kF8E4M3, 240},
                                                  {kF8E4M3FN, 448},
                                                  {kF8E4M3FNUZ, 240},
                                                  {kF8E4M3B11FNUZ, 30},
                                                  {kF8E5M2, 57344},
                                                  {kF8E5M2FNUZ, 57344},
                                                  {kF8E8M0FNU, 0x1p127},
                                                  {kF16, 65504},
                                                  {kBF16, 0x1.FEp127},
                                                  {kF32, std::numeric_limits<float>::max()},
                                                  {kF64, std::numeric_limits<double>::max()}};
  for (const auto& [type, greatest] : cases) EXPECT_EQ(float_max(type), greatest) << name_of(type);
}

TEST(FloatConvert, InfinitiesAndNans) {
  EXPECT_TRUE(has_infinity(kF8E5M2));
  EXPECT_FALSE(has_infinity(kF8E4M3FN));
  EXPECT_FALSE(has_infinity(kS8));
  EXPECT_TRUE(has_nan(kF8E8M0FNU));
  EXPECT_FALSE(has_nan(kF4E2M1FN));
}

// --- One rounding

// A value just above a midpoint of `type` that f32 would round onto the midpoint.
TEST(FloatConvert, DoubleIsRoundedOnce) {
  for (const ElementType type : {kF8E4M3FN, kF8E5M2, kF8E3M4, kF16, kBF16, kF6E2M3FN, kF4E2M1FN}) {
    const uint64_t one = encode_float(type, 1.0);
    ASSERT_EQ(one % 2, 0u) << name_of(type);  // so that the tie goes down
    const double middle = (1 + decode_float(type, one + 1)) / 2;
    const double above = middle + 0x1p-40;
    EXPECT_EQ(encode_float(type, static_cast<double>(static_cast<float>(above))), one);
    EXPECT_EQ(encode_float(type, above), one + 1) << name_of(type);
    EXPECT_EQ(encode_float(type, static_cast<Float128>(middle) + static_cast<Float128>(0x1p-90)),
              one + 1)
        << name_of(type);
  }
}

TEST(FloatConvert, Binary128ToF64AndF32RoundOnce) {
  const auto tie = static_cast<Float128>(1) + static_cast<Float128>(0x1p-24);
  EXPECT_EQ(round_to(kF32, tie), 1.0);
  EXPECT_EQ(round_to(kF32, tie + static_cast<Float128>(0x1p-80)), 1.0 + 0x1p-23);
  EXPECT_EQ(round_to(kF64, static_cast<Float128>(1) + static_cast<Float128>(0x1p-53)), 1.0);
}

TEST(FloatConvert, IntegersToF32DoNotPassThroughF64) {
  // 2^60 + 2^36 is a tie of f32; one more unit lies above it but is lost in f64.
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(static_cast<double>(above), 0x1p60 + 0x1p36);
  EXPECT_EQ(round_to(kF32, static_cast<Float128>(above)), 0x1p60 + 0x1p37);
  EXPECT_EQ(round_to(kBF16, static_cast<Float128>((int64_t{1} << 62) + (int64_t{1} << 54) + 1)),
            0x1p62 + 0x1p55);
}

TEST(FloatConvert, DenormalsOfF32) {
  EXPECT_EQ(encode_float(kF32, 0x1p-149), 1u);
  EXPECT_EQ(encode_float(kF32, 0x1p-150), 0u);
  EXPECT_EQ(encode_float(kF32, 0x1.8p-150), 1u);
  EXPECT_EQ(decode_float(kF32, 1), 0x1p-149);
}

// --- Integers

TEST(FloatConvert, WrapIntegerKeepsTheLowBits) {
  struct Case {
    ElementType type;
    int64_t value;
    int64_t expected;
  };
  const Case cases[] = {{kS2, 3, -1},           {kS2, 2, -2},
                        {kU2, -1, 3},           {kS4, 8, -8},
                        {kU4, 31, 15},          {kS8, 128, -128},
                        {kU8, -1, 255},         {kS16, 65535, -1},
                        {kU16, -2, 65534},      {kS32, int64_t{1} << 31, -(int64_t{1} << 31)},
                        {kU32, -1, 0xFFFFFFFF}, {kS64, -5, -5},
                        {kU64, -5, -5},         {kPred, 3, 1}};
  for (const Case& c : cases)
    EXPECT_EQ(wrap_integer(c.type, c.value), c.expected) << name_of(c.type);
}

TEST(FloatConvert, RangesOfIntegers) {
  EXPECT_EQ(integer_min(kS2), -2);
  EXPECT_EQ(integer_max(kS2), 1);
  EXPECT_EQ(integer_min(kU4), 0);
  EXPECT_EQ(integer_max(kU4), 15);
  EXPECT_EQ(integer_min(kS64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer_max(kS64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(integer_max(kU64), -1);
}

TEST(FloatConvert, FloatToIntegerTruncatesAndSaturates) {
  struct Case {
    ElementType type;
    double value;
    int64_t expected;
  };
  const Case cases[] = {{kS8, 1.9, 1},
                        {kS8, -1.9, -1},
                        {kS8, 127.9, 127},
                        {kS8, 128, 127},
                        {kS8, -129, -128},
                        {kS8, kNan, 0},
                        {kU8, -1, 0},
                        {kU8, -0.5, 0},
                        {kU8, 255.9, 255},
                        {kU8, kInf, 255},
                        {kS2, 7, 1},
                        {kU2, 7, 3},
                        {kS32, 3e9, 0x7FFFFFFF},
                        {kU32, 3e9, 3000000000},
                        {kS64, 1e30, std::numeric_limits<int64_t>::max()},
                        {kS64, -kInf, std::numeric_limits<int64_t>::min()},
                        {kU64, 1e30, -1},
                        {kU64, 0x1p63, std::numeric_limits<int64_t>::min()},
                        {kU64, -1e30, 0}};
  for (const Case& c : cases) {
    EXPECT_EQ(float_to_integer(c.type, static_cast<Float128>(c.value)), c.expected)
        << name_of(c.type) << " " << c.value;
  }
}

}  // namespace
}  // namespace tenon
