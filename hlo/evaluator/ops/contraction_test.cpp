// dot_general, convolution, fft.
#include <cmath>

#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::constant;
using testing::eval;
using testing::run;

std::string dot(std::string_view x_type, std::string_view x, std::string_view y_type,
                std::string_view y, std::string_view dims, std::string_view result) {
  return eval(constant("x", x_type, x) + constant("y", y_type, y) +
                  fmt::format("%r = stablehlo.dot_general(%x, %y) {{dot_dimension_numbers = "
                              "#stablehlo.dot<{}>}} : {}",
                              dims, result),
              "%r", result);
}
constexpr const char* kMatmul =
    "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]";
constexpr const char* kVectors =
    "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]";

TEST(DotGeneral, Matrices) {
  EXPECT_EQ(dot("s32[2,3]", "[[1, 2, 3], [4, 5, 6]]", "s32[3,2]", "[[1, 0], [0, 1], [1, 1]]",
                kMatmul, "s32[2,2]"),
            "[[4, 5], [10, 11]]");
  EXPECT_EQ(dot("f32[2]", "[1, 2]", "f32[2]", "[3, 4]", kVectors, "f32[]"), "11");
}

TEST(DotGeneral, ResultDimensionsAreBatchingThenLeftThenRight) {
  EXPECT_EQ(dot("s32[2,1,2]", "[[[1, 2]], [[3, 4]]]", "s32[2,2,1]", "[[[1], [1]], [[2], [3]]]",
                "lhs_batching_dimensions = [2], rhs_batching_dimensions = [1], "
                "lhs_contracting_dimensions = [0], "
                "rhs_contracting_dimensions = [0]",
                "s32[2,1,1]"),
            "[[[7]], [[14]]]");
  EXPECT_EQ(dot("s32[2]", "[1, 2]", "s32[3]", "[1, 10, 100]", "", "s32[2,3]"),
            "[[1, 10, 100], [2, 20, 200]]");
}

TEST(DotGeneral, OverAnEmptyDimensionIsZero) {
  EXPECT_EQ(dot("f32[2,0]", "", "f32[0,2]", "", kMatmul, "f32[2,2]"), "[[0, 0], [0, 0]]");
  EXPECT_EQ(dot("f32[0,2]", "", "f32[2,2]", "[[1, 2], [3, 4]]", kMatmul, "f32[0,2]"), "[]");
}

TEST(DotGeneral, IntegersWrapInTheResultType) {
  EXPECT_EQ(dot("s8[2]", "[100, 100]", "s8[2]", "[2, 1]", kVectors, "s8[]"), "44");
  EXPECT_EQ(dot("s8[2]", "[100, 100]", "s8[2]", "[2, 1]", kVectors, "s32[]"), "300");
  EXPECT_EQ(dot("u8[2]", "[255, 255]", "u8[2]", "[255, 255]", kVectors, "u32[]"), "130050");
  EXPECT_EQ(dot("s4[2]", "[-8, 7]", "s4[2]", "[-8, 7]", kVectors, "s32[]"), "113");
}

TEST(DotGeneral, NarrowFloatsAccumulateInF32) {
  EXPECT_EQ(dot("bf16[3]", "[256, 1, 1]", "bf16[3]", "[1, 1, 1]", kVectors, "f32[]"), "258");
  EXPECT_EQ(dot("bf16[3]", "[256, 1, 1]", "bf16[3]", "[1, 1, 1]", kVectors, "bf16[]"), "258");
  EXPECT_EQ(dot("f16[2]", "[60000, 60000]", "f16[2]", "[1, -1]", kVectors, "f16[]"), "0");
  EXPECT_EQ(dot("f8e4m3fn[2]", "[448, 448]", "f8e5m2[2]", "[2, 2]", kVectors, "f32[]"), "1792");
}

TEST(DotGeneral, WeightsMayBeShortIntegers) {
  EXPECT_EQ(dot("f32[2]", "[0.5, 2]", "s8[2]", "[-127, 100]", kVectors, "f32[]"), "136.5");
  EXPECT_EQ(dot("s4[2]", "[-8, 7]", "f32[2]", "[0.5, 0.25]", kVectors, "f32[]"), "-2.25");
  EXPECT_EQ(dot("bf16[2]", "[1, 1]", "u8[2]", "[255, 3]", kVectors, "bf16[]"), "258");
}

TEST(DotGeneral, ComplexAndSpecialValues) {
  EXPECT_EQ(dot("c64[1]", "[(1, 2)]", "c64[1]", "[(3, 4)]", kVectors, "c64[]"), "(-5, 10)");
  EXPECT_EQ(dot("f32[2]", "[inf, 1]", "f32[2]", "[0, 1]", kVectors, "f32[]"), "nan");
}

// --- Convolution

// A one-dimensional convolution of [1, 2, 3, 4] with `kernel`.
std::string conv(std::string_view kernel, int taps, std::string_view attributes, int size) {
  const std::string body =
      constant("x", "s32[1,4,1]", "[[[1], [2], [3], [4]]]") +
      constant("v", fmt::format("s32[{}]", taps), kernel) +
      fmt::format("%k = stablehlo.reshape(%v) : s32[{},1,1]\n", taps) +
      fmt::format(
          "%c = stablehlo.convolution(%x, %k) {{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, "
          "i, o]->[b, 0, f]>, "
          "feature_group_count = 1, batch_group_count = 1{}{}}} : s32[1,{},1]\n"
          "%r = stablehlo.reshape(%c) : s32[{}]",
          attributes.empty() ? "" : ", ", attributes, size, size);
  return eval(body, "%r", fmt::format("s32[{}]", size));
}

TEST(Convolution, OneDimension) {
  EXPECT_EQ(conv("[1, 10]", 2, "", 3), "[21, 32, 43]");
  EXPECT_EQ(conv("[1, 10]", 2, "window_reversal = array<i1: true>", 3), "[12, 23, 34]");
  EXPECT_EQ(conv("[1, 10]", 2, "window_strides = [2]", 2), "[21, 43]");
  EXPECT_EQ(conv("[1, 10]", 2, "padding = [[1, 1]]", 5), "[10, 21, 32, 43, 4]");
  EXPECT_EQ(conv("[1, 10]", 2, "padding = [[-1, 0]]", 2), "[32, 43]");
  EXPECT_EQ(conv("[1, 10]", 2, "rhs_dilation = [2]", 2), "[31, 42]");
  EXPECT_EQ(conv("[1, 10]", 2, "lhs_dilation = [2]", 6), "[1, 20, 2, 30, 3, 40]");
  EXPECT_EQ(conv("[1, 10]", 2, "lhs_dilation = [3], padding = [[2, -1]]", 10),
            "[0, 10, 1, 0, 20, 2, 0, 30, 3, 0]");
  EXPECT_EQ(conv("[1, 10, 100, 1000, 10000]", 5, "", 0), "[]");
  EXPECT_EQ(conv("", 0, "", 5), "[0, 0, 0, 0, 0]");
}

TEST(Convolution, FeatureGroups) {
  // Two groups: each output feature uses one input feature.
  EXPECT_EQ(eval(constant("x", "s32[1,2,2]", "[[[1, 2], [3, 4]]]") +
                     constant("k", "s32[1,1,2]", "[[[10, 100]]]") +
                     "%r = stablehlo.convolution(%x, %k) {dimension_numbers = #stablehlo.conv<[b, "
                     "0, f]x[0, i, o]->[b, 0, f]>, "
                     "feature_group_count = 2, batch_group_count = 1} : s32[1,2,2]",
                 "%r", "s32[1,2,2]"),
            "[[[10, 200], [30, 400]]]");
}

TEST(Convolution, BatchGroups) {
  // Two groups of the batch: output feature o uses batch o.
  EXPECT_EQ(eval(constant("x", "s32[2,2,1]", "[[[1], [2]], [[3], [4]]]") +
                     constant("k", "s32[1,1,2]", "[[[10, 100]]]") +
                     "%r = stablehlo.convolution(%x, %k) {dimension_numbers = #stablehlo.conv<[b, "
                     "0, f]x[0, i, o]->[b, 0, f]>, "
                     "feature_group_count = 1, batch_group_count = 2} : s32[1,2,2]",
                 "%r", "s32[1,2,2]"),
            "[[[10, 300], [20, 400]]]");
}

TEST(Convolution, NoSpatialDimensionsAndOtherLayouts) {
  EXPECT_EQ(
      eval(constant("x", "s32[2,1]", "[[1], [2]]") + constant("k", "s32[1,2]", "[[10, 100]]") +
               "%r = stablehlo.convolution(%x, %k) {dimension_numbers = #stablehlo.conv<[b, f]x[i, "
               "o]->[f, b]>, "
               "feature_group_count = 1, batch_group_count = 1} : s32[2,2]",
           "%r", "s32[2,2]"),
      "[[10, 20], [100, 200]]");
}

TEST(Convolution, IntegersWrap) {
  EXPECT_EQ(eval(constant("x", "s8[1,2]", "[[100, 100]]") + constant("k", "s8[2,1]", "[[1], [1]]") +
                     "%r = stablehlo.convolution(%x, %k) {dimension_numbers = #stablehlo.conv<[b, "
                     "f]x[i, o]->[b, f]>, "
                     "feature_group_count = 1, batch_group_count = 1} : s8[1,1]",
                 "%r", "s8[1,1]"),
            "[[-56]]");
}

// --- FFT

std::string fft(std::string_view kind, std::string_view length, std::string_view type,
                std::string_view x, std::string_view result) {
  return eval(constant("x", type, x) +
                  fmt::format("%r = stablehlo.fft(%x) {{fft_type = {}, fft_length = {}}} : {}",
                              kind, length, result),
              "%r", result);
}

TEST(Fft, Kinds) {
  EXPECT_EQ(fft("FFT", "[4]", "c64[4]", "[(1, 0), (0, 0), (0, 0), (0, 0)]", "c64[4]"),
            "[(1, 0), (1, 0), (1, 0), (1, 0)]");
  EXPECT_EQ(fft("IFFT", "[4]", "c64[4]", "[(4, 0), (0, 0), (0, 0), (0, 0)]", "c64[4]"),
            "[(1, 0), (1, 0), (1, 0), (1, 0)]");
  EXPECT_EQ(fft("RFFT", "[4]", "f32[4]", "[1, 2, 3, 4]", "c64[3]"), "[(10, 0), (-2, 2), (-2, 0)]");
  EXPECT_EQ(fft("IRFFT", "[4]", "c64[3]", "[(10, 0), (-2, 2), (-2, 0)]", "f32[4]"), "[1, 2, 3, 4]");
  // The imaginary parts of the first and the middle bin are ignored.
  EXPECT_EQ(fft("IRFFT", "[4]", "c64[3]", "[(10, 7), (-2, 2), (-2, 9)]", "f32[4]"), "[1, 2, 3, 4]");
}

TEST(Fft, EveryLengthRoundTrips) {
  for (const int n : {1, 2, 3, 5, 6, 7, 12}) {
    std::string values = "[";
    for (int i = 0; i < n; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i * i + 1);
    const std::string real = fmt::format("f64[{}]", n);
    const std::string half = fmt::format("c128[{}]", n / 2 + 1);
    const auto back =
        run(constant("x", real, values + "]") +
                fmt::format("%y = stablehlo.fft(%x) {{fft_type = RFFT, fft_length = [{}]}} : {}\n"
                            "%r = stablehlo.fft(%y) {{fft_type = IRFFT, fft_length = [{}]}} : {}",
                            n, half, n, real),
            "%r", real);
    ASSERT_TRUE(back) << back.error().to_string();
    for (int i = 0; i < n; ++i) EXPECT_NEAR((*back)[0].get_double(i), i * i + 1, 1e-12) << n;
  }
}

TEST(Fft, SeveralDimensions) {
  EXPECT_EQ(fft("FFT", "[2, 2]", "c64[2,2]", "[[(1, 0), (2, 0)], [(3, 0), (4, 0)]]", "c64[2,2]"),
            "[[(10, 0), (-2, 0)], [(-4, 0), (0, 0)]]");
  EXPECT_EQ(fft("FFT", "[2]", "c64[2,2]", "[[(1, 0), (2, 0)], [(3, 0), (4, 0)]]", "c64[2,2]"),
            "[[(3, 0), (-1, 0)], [(7, 0), (-1, 0)]]");
  EXPECT_EQ(fft("RFFT", "[2, 2]", "f32[2,2]", "[[1, 2], [3, 4]]", "c64[2,2]"),
            "[[(10, 0), (-2, 0)], [(-4, 0), (0, 0)]]");
  EXPECT_EQ(
      fft("IRFFT", "[2, 2]", "c64[2,2]", "[[(10, 0), (-2, 0)], [(-4, 0), (0, 0)]]", "f32[2,2]"),
      "[[1, 2], [3, 4]]");
  EXPECT_EQ(fft("FFT", "[2]", "c64[0,2]", "", "c64[0,2]"), "[]");
}

}  // namespace
}  // namespace tenon::hlo
