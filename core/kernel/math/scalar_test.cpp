#include "core/kernel/math/scalar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/kernel/text/text.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

std::string integers(OpCode code, ElementType type, int64_t x, int64_t y = 0) {
  const uint64_t bits =
      evaluate(code, type, type, bits_of_integer(type, x), bits_of_integer(type, y));
  return constant_text(scalar_op(code).result == ResultType::kPred ? kPred : type, bits);
}
std::string reals(OpCode code, ElementType type, double x, double y = 0, double z = 0) {
  const uint64_t bits = evaluate(code, type, type, bits_of_real(type, x), bits_of_real(type, y),
                                 bits_of_real(type, z));
  return constant_text(scalar_op(code).result == ResultType::kPred ? kPred : type, bits);
}
std::string converted(ElementType from, double x, ElementType to) {
  return constant_text(to, evaluate(OpCode::kConvert, to, from, bits_of_real(from, x)));
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(integers(OpCode::kAdd, kS8, 127, 1), "-128");
  EXPECT_EQ(integers(OpCode::kSub, kU8, 0, 1), "255");
  EXPECT_EQ(integers(OpCode::kMul, kS32, 65536, 65536), "0");
  EXPECT_EQ(integers(OpCode::kNeg, kS4, -8), "-8");
  EXPECT_EQ(integers(OpCode::kAbs, kS64, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(integers(OpCode::kMulHi, kU64, -1, -1), "18446744073709551614");
  EXPECT_EQ(integers(OpCode::kMulHi, kS32, -1, 1), "-1");
}

TEST(Scalar, DivisionIsTotal) {
  EXPECT_EQ(integers(OpCode::kDiv, kS32, 7, 0), "-1");
  EXPECT_EQ(integers(OpCode::kDiv, kU16, 7, 0), "65535");
  EXPECT_EQ(integers(OpCode::kRem, kS32, 7, 0), "7");
  EXPECT_EQ(integers(OpCode::kDiv, kS64, INT64_MIN, -1), "-9223372036854775808");
  EXPECT_EQ(integers(OpCode::kRem, kS64, INT64_MIN, -1), "0");
  EXPECT_EQ(integers(OpCode::kDiv, kS32, -7, 2), "-3");
  EXPECT_EQ(integers(OpCode::kRem, kS32, -7, 2), "-1");
}

TEST(Scalar, Shifts) {
  EXPECT_EQ(integers(OpCode::kShl, kS8, 1, 7), "-128");
  EXPECT_EQ(integers(OpCode::kShl, kS8, 1, 8), "0");
  EXPECT_EQ(integers(OpCode::kShl, kS32, 1, -1), "0");
  EXPECT_EQ(integers(OpCode::kShr, kS8, -1, 4), "15");
  EXPECT_EQ(integers(OpCode::kSar, kS8, -16, 2), "-4");
  EXPECT_EQ(integers(OpCode::kSar, kS8, -16, 200), "-1");
  EXPECT_EQ(integers(OpCode::kRotl, kU8, 0x81, 1), "3");
  EXPECT_EQ(integers(OpCode::kRotl, kU8, 0x81, 8), "129");
  EXPECT_EQ(integers(OpCode::kClz, kS16, 0), "16");
  EXPECT_EQ(integers(OpCode::kClz, kU4, 1), "3");
  EXPECT_EQ(integers(OpCode::kPopcount, kS8, -1), "8");
}

TEST(Scalar, LeastAndGreatest) {
  EXPECT_EQ(reals(OpCode::kMin, kF32, 0.0, -0.0), "-0.0");
  EXPECT_EQ(reals(OpCode::kMax, kF16, -0.0, 0.0), "0.0");
  EXPECT_EQ(reals(OpCode::kMax, kF64, NAN, 1), "0x7FF8000000000000");
  EXPECT_EQ(integers(OpCode::kMax, kU8, 200, 100), "200");
  EXPECT_EQ(integers(OpCode::kMin, kS8, -56, 100), "-56");
}

TEST(Scalar, Comparisons) {
  EXPECT_EQ(reals(OpCode::kNe, kF32, NAN, NAN), "true");
  EXPECT_EQ(reals(OpCode::kEq, kF32, NAN, NAN), "false");
  EXPECT_EQ(reals(OpCode::kEq, kBF16, 0.0, -0.0), "true");
  EXPECT_EQ(integers(OpCode::kLt, kU64, 1, -1), "true");
  EXPECT_EQ(integers(OpCode::kLt, kPred, 0, 1), "true");
}

TEST(Scalar, Rounding) {
  EXPECT_EQ(reals(OpCode::kRoundEven, kF32, 2.5), "2.0");
  EXPECT_EQ(reals(OpCode::kRoundAway, kF32, 2.5), "3.0");
  EXPECT_EQ(reals(OpCode::kTrunc, kF64, -0.5), "-0.0");
  EXPECT_EQ(reals(OpCode::kRem, kF32, -7, 2), "-1.0");
}

// Every pair of f8E5M2 with a few addends: fma against exact arithmetic in binary128.
TEST(Scalar, NarrowFmaRoundsOnce) {
  for (const ElementType type : {kF8E5M2, kF8E4M3FN, kF16, kBF16}) {
    const int step = bit_width(type) == 8 ? 1 : 257;
    for (int x = 0; x < 1 << bit_width(type); x += step) {
      for (int y = 0; y < 1 << bit_width(type); y += step) {
        for (const uint64_t z : {uint64_t{1}, uint64_t{0x3C}, static_cast<uint64_t>(x ^ 3)}) {
          const double a = decode_float(type, static_cast<uint64_t>(x));
          const double b = decode_float(type, static_cast<uint64_t>(y));
          const double c = decode_float(type, z);
          // If they are this far apart, binary128 cannot represent the sum either.
          if (c != 0 && std::fabs(c) < std::fabs(a * b) * 0x1p-90) continue;
          const Float128 exact = static_cast<Float128>(a) * b + c;
          const uint64_t expected = encode_float(type, exact);
          const uint64_t found = evaluate(OpCode::kFma, type, type, static_cast<uint64_t>(x),
                                          static_cast<uint64_t>(y), z);
          if (std::isnan(decode_float(type, expected))) {
            ASSERT_TRUE(std::isnan(decode_float(type, found)));
          } else {
            ASSERT_EQ(found, expected) << name_of(type) << " " << a << " " << b << " " << c;
          }
        }
      }
    }
  }
}

TEST(Scalar, Conversions) {
  EXPECT_EQ(converted(kF32, 300, kS8), "127");
  EXPECT_EQ(converted(kF32, -1, kU32), "0");
  EXPECT_EQ(converted(kF32, NAN, kS32), "0");
  EXPECT_EQ(converted(kF64, 1e30, kF32), "1e+30");
  EXPECT_EQ(converted(kF64, 1e300, kF32), "inf");
  EXPECT_EQ(converted(kS32, 258, kS8), "2");
  EXPECT_EQ(converted(kF32, NAN, kPred), "true");
  EXPECT_EQ(converted(kF32, -0.0, kPred), "false");
  EXPECT_EQ(constant_text(kF32, evaluate(OpCode::kConvert, kF32, kU64, ~uint64_t{0})),
            "1.8446744e+19");
  EXPECT_EQ(constant_text(kS32, evaluate(OpCode::kBitcast, kS32, kF32, bits_of_real(kF32, -0.0))),
            "-2147483648");
  EXPECT_EQ(
      constant_text(kF16, evaluate(OpCode::kBitcast, kF16, kS16, bits_of_integer(kS16, -1024))),
      "-inf");
}

TEST(Scalar, Constants) {
  EXPECT_EQ(constant_text(kF32, 0x7FC00001), "0x7FC00001");
  EXPECT_EQ(constant_text(kF32, bits_of_real(kF32, 0.1)), "0.1");
  EXPECT_EQ(constant_text(kPred, 1), "true");
  EXPECT_EQ(constant_text(kU64, ~uint64_t{0}), "18446744073709551615");
}

}  // namespace
}  // namespace tenon::kernel
