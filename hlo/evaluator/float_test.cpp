// Elementwise ops on floats and complex numbers: NaN, infinities, signed zeros, denormals,
// rounding.
#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::Binary;
using testing::binary;
using testing::check;
using testing::Unary;
using testing::unary;

TEST(Float, MaximumAndMinimumAreThoseOfIeee2019) {
  for (const char* type : {"f32[5]", "f64[5]", "bf16[5]", "f16[5]", "f8e5m2[5]"}) {
    check(std::vector<Binary>{
        {"maximum", type, "[nan, 1, -0.0, 0, -inf]", "[1, nan, 0, -0.0, 2]", "[nan, nan, 0, 0, 2]"},
        {"minimum", type, "[nan, 1, -0.0, 0, -inf]", "[1, nan, 0, -0.0, 2]",
         "[nan, nan, -0, -0, -inf]"}});
  }
}

TEST(Float, SignsZerosAndRounding) {
  check(std::vector<Unary>{
      {"sign", "f32[6]", "[-inf, -0.0, 0, nan, 1.0e-45, inf]", "[-1, -0, 0, nan, 1, 1]"},
      {"abs", "f32[4]", "[-0.0, -inf, nan, -2]", "[0, inf, nan, 2]"},
      {"negate", "f32[3]", "[0, -0.0, inf]", "[-0, 0, -inf]"},
      {"ceil", "f32[5]", "[-0.5, 0.5, -0.0, inf, nan]", "[-0, 1, -0, inf, nan]"},
      {"floor", "f32[4]", "[-0.5, 0.5, -0.0, -inf]", "[-1, 0, -0, -inf]"},
      {"round_nearest_afz", "f32[7]", "[0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.2]",
       "[1, -1, 2, 3, -3, 0, -0]"},
      {"round_nearest_even", "f32[6]", "[0.5, -0.5, 1.5, 2.5, -2.5, -0.2]",
       "[0, -0, 2, 2, -2, -0]"},
      {"sqrt", "f32[4]", "[-0.0, -1, inf, 4]", "[-0, nan, inf, 2]"},
      {"rsqrt", "f32[5]", "[0, -0.0, inf, -1, 4]", "[inf, -inf, 0, nan, 0.5]"},
      {"cbrt", "f32[4]", "[-8, 27, -0.0, -inf]", "[-2, 3, -0, -inf]"},
      {"exponential", "f32[4]", "[-inf, inf, nan, 0]", "[0, inf, nan, 1]"},
      {"exponential_minus_one", "f32[4]", "[1.0e-10, -0.0, -inf, inf]", "[1e-10, -0, -1, inf]"},
      {"log", "f32[5]", "[0, -0.0, -1, inf, 1]", "[-inf, -inf, nan, inf, 0]"},
      {"log_plus_one", "f32[5]", "[1.0e-10, -0.0, -1, -2, inf]", "[1e-10, -0, -inf, nan, inf]"},
      {"logistic", "f32[5]", "[-1000, 1000, 0, -inf, inf]", "[0, 1, 0.5, 0, 1]"},
      {"tanh", "f32[5]", "[-inf, inf, -0.0, 100, nan]", "[-1, 1, -0, 1, nan]"},
      {"sine", "f32[4]", "[inf, -0.0, nan, 1.0e22]", "[nan, -0, nan, -0.7340815]"},
      {"cosine", "f32[3]", "[-inf, 0, -0.0]", "[nan, 1, 1]"},
      {"tan", "f32[2]", "[inf, -0.0]", "[nan, -0]"},
  });
}

TEST(Float, IsFinite) {
  EXPECT_EQ(unary("is_finite", "f32[5]", "[inf, -inf, nan, 0, 3.0e38]", "pred[5]"),
            "[false, false, false, true, true]");
}

TEST(Float, TwoOperands) {
  check(std::vector<Binary>{
      {"remainder", "f32[6]", "[5.5, -5.5, 5.5, 1, 1, inf]", "[2, 2, -2, inf, 0, 1]",
       "[1.5, -1.5, 1.5, 1, nan, nan]"},
      {"remainder", "f32[1]", "[-4]", "[2]", "[-0]"},
      {"divide", "f32[4]", "[1, -1, 0, 1]", "[0, 0, 0, -0.0]", "[inf, -inf, nan, -inf]"},
      {"power", "f32[7]", "[1, nan, -8, 0, -0.0, 2, -1]", "[nan, 0, 0.333333, -1, -3, -inf, inf]",
       "[1, 1, nan, inf, -inf, 0, 1]"},
      {"atan2", "f32[4]", "[0, -0.0, 0, -0.0]", "[1, 1, -1, -1]", "[0, -0, 3.1415927, -3.1415927]"},
      {"add", "f32[2]", "[-0.0, inf]", "[-0.0, -inf]", "[-0, nan]"},
      {"subtract", "f32[1]", "[0]", "[0]", "[0]"},
      {"multiply", "f32[2]", "[0, -0.0]", "[inf, 5]", "[nan, -0]"},
  });
}

TEST(Float, DenormalsAreKept) {
  check(std::vector<Binary>{{"add", "f32[1]", "[1.0e-45]", "[1.0e-45]", "[3e-45]"},
                            {"multiply", "f32[1]", "[1.1754944e-38]", "[0.5]", "[5.877472e-39]"},
                            {"divide", "f64[1]", "[4.9406564584124654e-324]", "[2]", "[0]"}});
  EXPECT_EQ(unary("convert", "f32[1]", "[1.0e-45]", "f64[1]"), "[1.401298464324817e-45]");
}

TEST(Float, NarrowTypesRoundOnceAnOp) {
  check(std::vector<Binary>{
      {"add", "f16[2]", "[2048, 65504]", "[1, 65504]", "[2048, inf]"},
      {"add", "bf16[1]", "[256]", "[1]", "[256]"},
      {"add", "f8e4m3fn[2]", "[448, 16]", "[448, 1]", "[nan, 16]"},
      {"multiply", "f8e5m2[1]", "[57344]", "[2]", "[inf]"},
      {"add", "f4e2m1fn[2]", "[6, 2]", "[6, 0.5]", "[6, 2]"},
      {"divide", "f16[1]", "[1]", "[3]", "[0.3333]"},
  });
  EXPECT_EQ(unary("exponential", "bf16[1]", "[1]"), "[2.72]");
}

// --- Comparison

TEST(Float, ComparisonsWithNanAndZeros) {
  const auto compare = [](const char* direction) {
    return binary("compare", "f32[4]", "[nan, -0.0, 1, nan]", "[1, 0, 1, nan]", "pred[4]",
                  fmt::format("comparison_direction = {}", direction));
  };
  EXPECT_EQ(compare("EQ"), "[false, true, true, false]");
  EXPECT_EQ(compare("NE"), "[true, false, false, true]");
  EXPECT_EQ(compare("LT"), "[false, false, false, false]");
  EXPECT_EQ(compare("LE"), "[false, true, true, false]");
  EXPECT_EQ(compare("GT"), "[false, false, false, false]");
  EXPECT_EQ(compare("GE"), "[false, true, true, false]");
}

TEST(Float, TheTotalOrderIsTotal) {
  // Each value is less than the next: -NaN, -inf, -1, negative denormal, -0, +0, least, 1, inf,
  // NaN.
  for (const char* values :
       {"f32[10]|[0xFFC00000, 0xFF800000, -1, 0x80000001, -0.0, 0, 0x00000001, 1, inf, 0x7FC00000]",
        "f64[10]|[0xFFF8000000000000, -inf, -1, 0x8000000000000001, -0.0, 0, 0x1, 1, inf, "
        "0x7FF8000000000000]",
        "bf16[10]|[0xFFC0, 0xFF80, -1, 0x8001, -0.0, 0, 0x0001, 1, 0x7F80, 0x7FC0]",
        "f8e5m2[10]|[0xFE, 0xFC, -1, 0x81, -0.0, 0, 0x01, 1, 0x7C, 0x7E]"}) {
    const std::string_view text(values);
    const std::string type(text.substr(0, text.find('|')));
    const std::string element = type.substr(0, type.find('['));
    const std::string body = testing::constant("a", type, text.substr(text.find('|') + 1)) +
                             fmt::format(
                                 "%x = stablehlo.slice(%a) {{start_indices = [0], limit_indices = "
                                 "[9], strides = [1]}} : {}[9]\n"
                                 "%y = stablehlo.slice(%a) {{start_indices = [1], limit_indices = "
                                 "[10], strides = [1]}} : {}[9]\n"
                                 "%r = stablehlo.compare(%x, %y) {{comparison_direction = LT, "
                                 "compare_type = TOTALORDER}} : pred[9]\n"
                                 "%s = stablehlo.compare(%a, %a) {{comparison_direction = EQ, "
                                 "compare_type = TOTALORDER}} : pred[10]",
                                 element, element);
    EXPECT_EQ(testing::eval(body, "%r, %s", "pred[9], pred[10]"),
              "[true, true, true, true, true, true, true, true, true]; "
              "[true, true, true, true, true, true, true, true, true, true]")
        << type;
  }
}

// --- Conversion

TEST(Convert, Table) {
  struct Case {
    const char* from;
    const char* x;
    const char* to;
    const char* expected;
  };
  const Case cases[] = {
      {"f32[5]", "[1.9, -1.9, nan, inf, -inf]", "s8[5]", "[1, -1, 0, 127, -128]"},
      {"f32[4]", "[-1, 300, 255.9, nan]", "u8[4]", "[0, 255, 255, 0]"},
      {"f64[2]", "[1.0e30, -1.0e30]", "s64[2]", "[9223372036854775807, -9223372036854775808]"},
      {"f32[2]", "[7, -7]", "s4[2]", "[7, -7]"},
      {"f32[2]", "[9, -9]", "s4[2]", "[7, -8]"},
      {"s32[3]", "[300, -1, 128]", "s8[3]", "[44, -1, -128]"},
      {"s32[2]", "[-1, 256]", "u8[2]", "[255, 0]"},
      {"u8[1]", "[255]", "s8[1]", "[-1]"},
      {"s8[1]", "[-1]", "u64[1]", "[18446744073709551615]"},
      {"f32[4]", "[0.3, nan, 0, -0.0]", "pred[4]", "[true, true, false, false]"},
      {"s32[2]", "[-5, 0]", "pred[2]", "[true, false]"},
      {"pred[2]", "[true, false]", "f32[2]", "[1, 0]"},
      {"pred[1]", "[true]", "s8[1]", "[1]"},
      {"u64[1]", "[18446744073709551615]", "f64[1]", "[1.8446744073709552e+19]"},
      // One rounding: 2^60 + 2^36 + 1 goes up in f32.
      {"s64[1]", "[1152921573326323713]", "f32[1]", "[1.1529216e+18]"},
      {"s32[2]", "[2049, 70000]", "f16[2]", "[2048, inf]"},
      {"f64[1]", "[1.0625000000001]", "f8e4m3fn[1]", "[1.125]"},
      {"f64[1]", "[1.0625]", "f8e4m3fn[1]", "[1]"},
      {"f32[3]", "[500, -inf, nan]", "f8e4m3fn[3]", "[nan, nan, nan]"},
      {"f32[2]", "[1.0e6, -1.0e6]", "f8e5m2[2]", "[inf, -inf]"},
      {"f32[3]", "[-0.0, 1000, nan]", "f8e4m3fnuz[3]", "[0, nan, nan]"},
      {"f32[3]", "[100, nan, -0.3]", "f4e2m1fn[3]", "[6, -0, -0.5]"},
      {"f32[2]", "[3.0e38, 65519.9]", "f16[2]", "[inf, 6.55e+04]"},
      {"f16[1]", "[0x7C00]", "bf16[1]", "[inf]"},
      {"c64[2]", "[(1.5, 2), (-3, nan)]", "f32[2]", "[1.5, -3]"},
      {"c64[2]", "[(1.9, 2), (300, 0)]", "s8[2]", "[1, 127]"},
      {"f32[1]", "[2.5]", "c128[1]", "[(2.5, 0)]"},
      {"c128[1]", "[(0.1, 0.2)]", "c64[1]", "[(0.1, 0.2)]"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(unary("convert", c.from, c.x, c.to), c.expected) << c.from << c.to;
}

TEST(ReducePrecision, Table) {
  const auto reduce = [](const char* x, int exponent, int mantissa) {
    return unary("reduce_precision", "f32[1]", fmt::format("[{}]", x), "",
                 fmt::format("exponent_bits = {}, mantissa_bits = {}", exponent, mantissa));
  };
  EXPECT_EQ(reduce("2049", 5, 10), "[2048]");
  EXPECT_EQ(reduce("2051", 5, 10), "[2052]");
  EXPECT_EQ(reduce("65519", 5, 10), "[65504]");
  EXPECT_EQ(reduce("65520", 5, 10), "[inf]");
  EXPECT_EQ(reduce("-100000", 5, 10), "[-inf]");
  EXPECT_EQ(reduce("6.0e-5", 5, 10), "[0]");  // a denormal of the new format
  EXPECT_EQ(reduce("-6.0e-5", 5, 10), "[-0]");
  EXPECT_EQ(reduce("6.103515625e-5", 5, 10), "[6.1035156e-05]");
  EXPECT_EQ(reduce("6.1035e-5", 5, 10), "[6.1035156e-05]");  // rounds up into the normal range
  EXPECT_EQ(reduce("nan", 5, 10), "[nan]");
  EXPECT_EQ(reduce("nan", 5, 0), "[inf]");
  EXPECT_EQ(reduce("1.5", 8, 0), "[2]");
  EXPECT_EQ(reduce("2.5", 8, 0), "[2]");
  EXPECT_EQ(reduce("3.14159265", 8, 23), "[3.1415927]");
  EXPECT_EQ(reduce("3.14159265", 11, 52), "[3.1415927]");
  EXPECT_EQ(reduce("-inf", 2, 1), "[-inf]");
  EXPECT_EQ(reduce("-0.0", 2, 1), "[-0]");
}

// --- Complex numbers

TEST(Complex, Parts) {
  EXPECT_EQ(unary("real", "c64[1]", "[(1, 2)]", "f32[1]"), "[1]");
  EXPECT_EQ(unary("imag", "c64[1]", "[(1, 2)]", "f32[1]"), "[2]");
  EXPECT_EQ(unary("real", "f32[1]", "[-0.0]"), "[-0]");
  EXPECT_EQ(unary("imag", "f32[1]", "[5]"), "[0]");
  EXPECT_EQ(unary("abs", "c64[3]", "[(3, -4), (inf, nan), (3.0e38, 3.0e38)]", "f32[3]"),
            "[5, inf, inf]");
  EXPECT_EQ(unary("abs", "c128[1]", "[(3.0e300, 4.0e300)]", "f64[1]"), "[5e+300]");
  EXPECT_EQ(binary("complex", "f64[1]", "[1]", "[-0.0]", "c128[1]"), "[(1, -0)]");
}

TEST(Complex, Arithmetic) {
  check(std::vector<Binary>{
      {"add", "c64[1]", "[(1, 2)]", "[(3, -5)]", "[(4, -3)]"},
      {"multiply", "c64[1]", "[(1, 2)]", "[(3, -5)]", "[(13, 1)]"},
      {"divide", "c64[1]", "[(13, 1)]", "[(3, -5)]", "[(1, 2)]"},
      // Scaled, because the norm of the divisor overflows or underflows f32 and f64.
      {"divide", "c64[2]", "[(1.0e30, 0), (1.0e-30, 0)]", "[(1.0e30, 1.0e30), (1.0e-30, 1.0e-30)]",
       "[(0.5, -0.5), (0.5, -0.5)]"},
      {"divide", "c128[1]", "[(1.0e300, 0)]", "[(1.0e300, 1.0e300)]", "[(0.5, -0.5)]"},
      {"divide", "c64[1]", "[(1, -1)]", "[(0, 0)]", "[(inf, -inf)]"},
      {"power", "c64[2]", "[(0, 0), (2, 0)]", "[(0, 0), (1, 0)]", "[(1, 0), (2, 0)]"},
      {"maximum", "c64[3]", "[(1, 5), (1, 2), (nan, 0)]", "[(2, 0), (1, 3), (1, 1)]",
       "[(2, 0), (1, 3), (nan, 0)]"},
      {"minimum", "c64[2]", "[(1, 5), (1, 2)]", "[(2, 0), (1, 3)]", "[(1, 5), (1, 2)]"},
  });
}

TEST(Complex, SpecialValuesOfFunctions) {
  check(std::vector<Unary>{
      {"exponential", "c64[2]", "[(-inf, nan), (0, 0)]", "[(0, 0), (1, 0)]"},
      {"sign", "c64[3]", "[(3, 4), (0, 0), (nan, 1)]", "[(0.6, 0.8), (0, 0), (nan, nan)]"},
      // The side of the cut follows the sign of the imaginary zero.
      {"sqrt", "c64[3]", "[(-4, 0), (-4, -0.0), (0, 2)]", "[(0, 2), (0, -2), (1, 1)]"},
      {"log", "c64[2]", "[(-1, 0), (-1, -0.0)]", "[(0, 3.1415927), (0, -3.1415927)]"},
      {"log_plus_one", "c64[1]", "[(1.0e-10, 0)]", "[(1e-10, 0)]"},
      {"exponential_minus_one", "c64[1]", "[(1.0e-10, 1.0e-10)]", "[(1e-10, 1e-10)]"},
      {"tanh", "c64[1]", "[(100, 1)]", "[(1, 0)]"},
      {"negate", "c64[1]", "[(0, 1)]", "[(-0, -1)]"},
      {"rsqrt", "c64[1]", "[(-4, 0)]", "[(0, -0.5)]"},
  });
}

TEST(Complex, Comparisons) {
  const auto compare = [](const char* direction) {
    return binary("compare", "c64[3]", "[(1, 2), (1, 2), (nan, 1)]", "[(1, 3), (1, 2), (nan, 1)]",
                  "pred[3]", fmt::format("comparison_direction = {}", direction));
  };
  EXPECT_EQ(compare("EQ"), "[false, true, false]");
  EXPECT_EQ(compare("NE"), "[true, false, true]");
}

}  // namespace
}  // namespace tenon::hlo
