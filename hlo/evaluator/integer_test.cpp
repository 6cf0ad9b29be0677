// Elementwise ops on integers and pred: overflow, division by zero, shifts, narrow widths.
#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::Binary;
using testing::binary;
using testing::check;
using testing::Unary;
using testing::unary;

TEST(Integer, OverflowWraps) {
  check(std::vector<Binary>{
      {"add", "s8[2]", "[127, -128]", "[1, -1]", "[-128, 127]"},
      {"add", "u8[1]", "[255]", "[1]", "[0]"},
      {"add", "s64[1]", "[9223372036854775807]", "[1]", "[-9223372036854775808]"},
      {"add", "u64[1]", "[18446744073709551615]", "[2]", "[1]"},
      {"add", "s4[1]", "[7]", "[1]", "[-8]"},
      {"add", "u2[1]", "[3]", "[3]", "[2]"},
      {"subtract", "s32[1]", "[-2147483648]", "[1]", "[2147483647]"},
      {"subtract", "u16[1]", "[0]", "[1]", "[65535]"},
      {"multiply", "s8[2]", "[100, -128]", "[2, -1]", "[-56, -128]"},
      {"multiply", "s64[1]", "[4611686018427387904]", "[2]", "[-9223372036854775808]"},
      {"multiply", "s4[1]", "[-8]", "[-8]", "[0]"},
  });
  check(std::vector<Unary>{{"negate", "s8[2]", "[-128, 5]", "[-128, -5]"},
                           {"negate", "u8[2]", "[1, 0]", "[255, 0]"},
                           {"abs", "s8[2]", "[-128, -5]", "[-128, 5]"},
                           {"abs", "s2[1]", "[-2]", "[-2]"}});
}

TEST(Integer, DivisionTruncatesAndIsTotal) {
  check(std::vector<Binary>{
      {"divide", "s8[6]", "[7, -7, 7, -7, 5, -128]", "[2, 2, -2, -2, 0, -1]",
       "[3, -3, -3, 3, -1, -128]"},
      {"divide", "s8[1]", "[0]", "[0]", "[-1]"},
      {"divide", "u8[2]", "[200, 5]", "[3, 0]", "[66, 255]"},
      {"divide", "s64[2]", "[-9223372036854775808, 1]", "[-1, 0]", "[-9223372036854775808, -1]"},
      {"divide", "u64[2]", "[18446744073709551615, 1]", "[2, 0]",
       "[9223372036854775807, 18446744073709551615]"},
      {"divide", "s4[2]", "[-8, 3]", "[-1, 0]", "[-8, -1]"},
      {"divide", "u4[1]", "[3]", "[0]", "[15]"},
      // The remainder has the dividend's sign.
      {"remainder", "s8[6]", "[7, -7, 7, -7, 5, -128]", "[2, 2, -2, -2, 0, -1]",
       "[1, -1, 1, -1, 5, 0]"},
      {"remainder", "u8[2]", "[200, 5]", "[3, 0]", "[2, 5]"},
      {"remainder", "s64[1]", "[-9223372036854775808]", "[-1]", "[0]"},
  });
}

TEST(Integer, Powers) {
  check(std::vector<Binary>{
      {"power", "s32[5]", "[3, -2, 0, 0, 5]", "[4, 3, 0, 3, 0]", "[81, -8, 1, 0, 1]"},
      {"power", "s8[2]", "[2, 3]", "[7, 5]", "[-128, -13]"},
      // Negative exponents: 1 divided by the power, truncated.
      {"power", "s32[6]", "[1, -1, -1, 2, 0, -2]", "[-5, -2, -3, -1, -1, -2]",
       "[1, 1, -1, 0, 0, 0]"},
      {"power", "u8[1]", "[3]", "[255]", "[171]"},
      {"power", "u64[1]", "[3]", "[18446744073709551615]", "[12297829382473034411]"},
  });
}

TEST(Integer, ShiftsByTheWidthAndMore) {
  check(std::vector<Binary>{
      {"shift_left", "s8[5]", "[1, 1, 1, 1, -1]", "[0, 7, 8, 100, -1]", "[1, -128, 0, 0, 0]"},
      {"shift_left", "u64[3]", "[1, 1, 1]", "[63, 64, 18446744073709551615]",
       "[9223372036854775808, 0, 0]"},
      {"shift_right_logical", "s8[4]", "[-1, -1, -1, -128]", "[1, 8, -1, 7]", "[127, 0, 0, 1]"},
      {"shift_right_logical", "u8[2]", "[255, 255]", "[4, 200]", "[15, 0]"},
      {"shift_right_logical", "s64[2]", "[-1, -1]", "[63, 64]", "[1, 0]"},
      {"shift_right_arithmetic", "s8[4]", "[-128, -128, 127, -1]", "[1, 8, 100, -1]",
       "[-64, -1, 0, -1]"},
      {"shift_right_arithmetic", "u8[2]", "[128, 127]", "[1, 9]", "[192, 0]"},
      {"shift_left", "s4[3]", "[1, 1, 1]", "[3, 4, -1]", "[-8, 0, 0]"},
      {"shift_right_arithmetic", "s2[2]", "[-2, -2]", "[1, -2]", "[-1, -1]"},
      {"shift_right_logical", "s4[1]", "[-8]", "[3]", "[1]"},
  });
}

TEST(Integer, BitCounts) {
  check(std::vector<Unary>{
      {"count_leading_zeros", "s8[4]", "[0, 1, -1, 64]", "[8, 7, 0, 1]"},
      {"count_leading_zeros", "u64[2]", "[0, 1]", "[64, 63]"},
      {"count_leading_zeros", "s32[1]", "[0]", "[32]"},
      {"popcnt", "s8[3]", "[-1, 0, 5]", "[8, 0, 2]"},
      {"popcnt", "s64[1]", "[-1]", "[64]"},
      {"count_leading_zeros", "u4[3]", "[0, 1, 8]", "[4, 3, 0]"},
      {"popcnt", "u4[2]", "[15, 5]", "[4, 2]"},
      {"popcnt", "s4[1]", "[-1]", "[4]"},
      {"count_leading_zeros", "u2[3]", "[0, 1, 2]", "[2, 1, 0]"},
      // 2 does not fit a signed integer of two bits: it wraps.
      {"popcnt", "s2[1]", "[-1]", "[-2]"},
  });
}

TEST(Integer, BitsAndSigns) {
  check(std::vector<Binary>{{"and", "s8[2]", "[12, -1]", "[10, 5]", "[8, 5]"},
                            {"or", "u8[1]", "[12]", "[10]", "[14]"},
                            {"xor", "s8[1]", "[-1]", "[1]", "[-2]"},
                            {"maximum", "s8[2]", "[-1, 3]", "[1, 2]", "[1, 3]"},
                            {"maximum", "u8[1]", "[255]", "[1]", "[255]"},
                            {"minimum", "u64[1]", "[18446744073709551615]", "[1]", "[1]"},
                            {"minimum", "s64[1]", "[-1]", "[1]", "[-1]"}});
  check(std::vector<Unary>{{"not", "s8[2]", "[0, -1]", "[-1, 0]"},
                           {"not", "u4[1]", "[5]", "[10]"},
                           {"sign", "s8[3]", "[-128, 0, 5]", "[-1, 0, 1]"}});
}

TEST(Integer, Pred) {
  check(std::vector<Binary>{
      {"and", "pred[4]", "[true, true, false, false]", "[true, false, true, false]",
       "[true, false, false, false]"},
      {"or", "pred[4]", "[true, true, false, false]", "[true, false, true, false]",
       "[true, true, true, false]"},
      {"xor", "pred[4]", "[true, true, false, false]", "[true, false, true, false]",
       "[false, true, true, false]"},
      {"add", "pred[4]", "[true, true, false, false]", "[true, false, true, false]",
       "[true, true, true, false]"},
      {"multiply", "pred[4]", "[true, true, false, false]", "[true, false, true, false]",
       "[true, false, false, false]"},
      {"maximum", "pred[2]", "[true, false]", "[false, false]", "[true, false]"},
      {"minimum", "pred[2]", "[true, true]", "[false, true]", "[false, true]"}});
  EXPECT_EQ(unary("not", "pred[2]", "[true, false]"), "[false, true]");
}

TEST(Integer, ClampAndSelect) {
  const auto clamp = [](const char* type, const char* lo, const char* x, const char* hi) {
    return testing::eval(testing::constant("lo", type, lo) + testing::constant("x", type, x) +
                             testing::constant("hi", type, hi) +
                             fmt::format("%r = stablehlo.clamp(%lo, %x, %hi) : {}", type),
                         "%r", type);
  };
  EXPECT_EQ(clamp("s8[3]", "[0, 0, 0]", "[-5, 5, 50]", "[10, 10, 10]"), "[0, 5, 10]");
  EXPECT_EQ(clamp("u8[1]", "[1]", "[255]", "[200]"), "[200]");
  // min(max(x, lo), hi): with lo above hi, hi wins.
  EXPECT_EQ(clamp("s8[1]", "[5]", "[0]", "[2]"), "[2]");
  EXPECT_EQ(clamp("f32[4]", "[nan, 0, 0, 0]", "[1, nan, 1, 5]", "[2, 2, nan, 2]"),
            "[nan, nan, nan, 2]");
  EXPECT_EQ(testing::eval(testing::constant("p", "pred[]", "true") +
                              testing::constant("x", "s8[2]", "[1, 2]") +
                              testing::constant("y", "s8[2]", "[3, 4]") +
                              "%r = stablehlo.select(%p, %x, %y) : s8[2]",
                          "%r", "s8[2]"),
            "[1, 2]");
}

TEST(Integer, Comparisons) {
  const auto compare = [](const char* direction, const char* type, const char* x, const char* y) {
    return binary("compare", type, x, y, "pred[2]",
                  fmt::format("comparison_direction = {}", direction));
  };
  EXPECT_EQ(compare("LT", "s8[2]", "[-1, 1]", "[1, -1]"), "[true, false]");
  EXPECT_EQ(compare("LT", "u8[2]", "[255, 1]", "[1, 255]"), "[false, true]");
  EXPECT_EQ(compare("GE", "u64[2]", "[18446744073709551615, 0]", "[1, 0]"), "[true, true]");
  EXPECT_EQ(compare("GT", "s64[2]", "[-1, 0]", "[1, 0]"), "[false, false]");
  EXPECT_EQ(compare("NE", "u2[2]", "[3, 1]", "[3, 2]"), "[false, true]");
  EXPECT_EQ(compare("LT", "pred[2]", "[false, true]", "[true, true]"), "[true, false]");
  EXPECT_EQ(compare("EQ", "s4[2]", "[-8, 7]", "[-8, -1]"), "[true, false]");
}

}  // namespace
}  // namespace tenon::hlo
