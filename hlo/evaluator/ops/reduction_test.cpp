// reduce, reduce_window, select_and_scatter, sort, map.
#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::binary_region;
using testing::compare_region;
using testing::constant;
using testing::eval;
using testing::region;

std::string reduce(std::string_view type, std::string_view x, std::string_view init,
                   std::string_view dimensions, std::string_view op, std::string_view result) {
  const std::string element = fmt::format("{}[]", type.substr(0, type.find('[')));
  return eval(constant("x", type, x) + constant("i", element, init) +
                  fmt::format("%r = stablehlo.reduce(%x, %i) {{dimensions = {}}} ({}) : {}",
                              dimensions, binary_region(op, element), result),
              "%r", result);
}

TEST(Reduce, AlongAnyDimensions) {
  const char* x = "[[1, 2, 3], [4, 5, 6]]";
  EXPECT_EQ(reduce("s32[2,3]", x, "0", "[0]", "add", "s32[3]"), "[5, 7, 9]");
  EXPECT_EQ(reduce("s32[2,3]", x, "0", "[1]", "maximum", "s32[2]"), "[3, 6]");
  EXPECT_EQ(reduce("s32[2,3]", x, "1", "[0, 1]", "multiply", "s32[]"), "720");
}

TEST(Reduce, OfNothingIsTheInitValue) {
  EXPECT_EQ(reduce("f32[0,2]", "", "7", "[0]", "add", "f32[2]"), "[7, 7]");
  EXPECT_EQ(reduce("f32[2,0]", "", "7", "[0]", "add", "f32[0]"), "[]");
}

TEST(Reduce, NoDimensionsStillCallTheBody) {
  EXPECT_EQ(reduce("s32[2]", "[1, 2]", "10", "[]", "add", "s32[2]"), "[11, 12]");
}

TEST(Reduce, OrderIsRowMajorFromTheInitValue) {
  EXPECT_EQ(reduce("s32[2,2]", "[[1, 2], [3, 4]]", "100", "[0, 1]", "subtract", "s32[]"), "90");
}

TEST(Reduce, ASumOfNarrowFloatsIsRoundedOnceAnythingElseAtEveryStep) {
  EXPECT_EQ(reduce("f16[3]", "[2048, 1, 1]", "0", "[0]", "add", "f16[]"), "2.05e+03");
  EXPECT_EQ(reduce("f32[3]", "[16777216, 1, 1]", "0", "[0]", "add", "f32[]"), "16777216");
  EXPECT_EQ(reduce("f16[3]", "[2048, 1, 1]", "0", "[0]", "subtract", "f16[]"), "-2048");
}

TEST(Reduce, SeveralInputsTakeAllAccumulatorsFirst) {
  // The greatest value and its index.
  EXPECT_EQ(eval(constant("x", "f32[4]", "[3, 9, 2, 9]") + constant("n", "s32[4]", "[0, 1, 2, 3]") +
                     constant("i", "f32[]", "-inf") + constant("j", "s32[]", "-1") +
                     "%r:2 = stablehlo.reduce(%x, %n, %i, %j) {dimensions = [0]} ({\n"
                     "^bb0(%a: f32[], %b: s32[], %c: f32[], %d: s32[]):\n"
                     "%p = stablehlo.compare(%a, %c) {comparison_direction = GE} : pred[]\n"
                     "%v = stablehlo.select(%p, %a, %c) : f32[]\n%w = stablehlo.select(%p, %b, %d) "
                     ": s32[]\n"
                     "stablehlo.return(%v, %w)\n}) : f32[], s32[]",
                 "%r#0, %r#1", "f32[], s32[]"),
            "9; 1");
}

TEST(Reduce, ABodyOfAWiderTypePromotes) {
  EXPECT_EQ(eval(constant("x", "s8[2]", "[100, 100]") + constant("i", "s8[]", "0") +
                     fmt::format("%r = stablehlo.reduce(%x, %i) {{dimensions = [0]}} ({}) : s32[]",
                                 binary_region("add", "s32[]")),
                 "%r", "s32[]"),
            "200");
}

TEST(Reduce, ABodyThatIsNotElementwise) {
  EXPECT_EQ(
      eval(constant("x", "s32[3]", "[1, 2, 3]") + constant("i", "s32[]", "0") +
               constant("k", "s32[]", "10") + "%r = stablehlo.reduce(%x, %i) {dimensions = [0]} (" +
               region(2, "s32[]",
                      "%p = stablehlo.compare(%x0, %x1) {comparison_direction = LT} : pred[]\n"
                      "%v = stablehlo.if(%p) ({\n%s = stablehlo.add(%x0, %k) : "
                      "s32[]\nstablehlo.return(%s)\n}, {\n"
                      "stablehlo.return(%x0)\n}) : s32[]\nstablehlo.return(%v)") +
               ") : s32[]",
           "%r", "s32[]"),
      "10");
}

// --- Windows

std::string window(std::string_view x, std::string_view init, std::string_view attributes,
                   int size) {
  return eval(constant("x", "s32[4]", x) + constant("i", "s32[]", init) +
                  fmt::format("%r = stablehlo.reduce_window(%x, %i) {{{}}} ({}) : s32[{}]",
                              attributes, binary_region("add", "s32[]"), size),
              "%r", fmt::format("s32[{}]", size));
}

TEST(ReduceWindow, StridesPaddingAndDilations) {
  const char* x = "[1, 2, 3, 4]";
  EXPECT_EQ(window(x, "0", "window_dimensions = [2]", 3), "[3, 5, 7]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [2], window_strides = [2]", 2), "[3, 7]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [2], padding = [[1, 1]]", 5), "[1, 3, 5, 7, 4]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [2], padding = [[-1, -1]]", 1), "[5]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [2], base_dilations = [2]", 6),
            "[1, 2, 2, 3, 3, 4]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [2], window_dilations = [2]", 2), "[4, 6]");
  EXPECT_EQ(window(x, "0", "window_dimensions = [5]", 0), "[]");
  EXPECT_EQ(window(x, "0",
                   "window_dimensions = [3], base_dilations = [2], window_dilations = [2], padding "
                   "= [[1, 0]]",
                   4),
            "[0, 6, 0, 9]");
}

TEST(ReduceWindow, PaddingContributesTheInitValue) {
  EXPECT_EQ(window("[1, 2, 3, 4]", "10", "window_dimensions = [2], padding = [[1, 0]]", 4),
            "[21, 13, 15, 17]");
}

TEST(ReduceWindow, TwoDimensions) {
  EXPECT_EQ(eval(constant("x", "s32[2,3]", "[[1, 2, 3], [4, 5, 6]]") + constant("i", "s32[]", "0") +
                     fmt::format("%r = stablehlo.reduce_window(%x, %i) {{window_dimensions = [2, "
                                 "2], padding = [[0, 1], [0, 0]]}} ({}) : s32[2,2]",
                                 binary_region("add", "s32[]")),
                 "%r", "s32[2,2]"),
            "[[12, 16], [9, 11]]");
}

std::string select_and_scatter(std::string_view operand, std::string_view source, int size,
                               std::string_view attributes, std::string_view direction = "GE",
                               std::string_view init = "0") {
  return eval(
      constant("x", "f32[4]", operand) + constant("s", fmt::format("f32[{}]", size), source) +
          constant("i", "f32[]", init) +
          fmt::format("%r = stablehlo.select_and_scatter(%x, %s, %i) {{{}}} ({}, {}) : f32[4]",
                      attributes,
                      compare_region(fmt::format("comparison_direction = {}", direction), "f32[]"),
                      binary_region("add", "f32[]")),
      "%r", "f32[4]");
}

TEST(SelectAndScatter, OverlappingWindowsAddUp) {
  EXPECT_EQ(select_and_scatter("[3, 1, 5, 2]", "[10, 20, 30]", 3, "window_dimensions = [2]"),
            "[10, 0, 50, 0]");
  EXPECT_EQ(
      select_and_scatter("[3, 1, 5, 2]", "[10, 20, 30]", 3, "window_dimensions = [2]", "LE", "100"),
      "[100, 130, 100, 130]");
}

TEST(SelectAndScatter, OfEqualElementsTheFirstWins) {
  EXPECT_EQ(select_and_scatter("[5, 5, 5, 5]", "[1, 2]", 2,
                               "window_dimensions = [2], window_strides = [2]"),
            "[1, 0, 2, 0]");
  EXPECT_EQ(select_and_scatter("[5, 5, 5, 5]", "[1, 2]", 2,
                               "window_dimensions = [2], window_strides = [2]", "GT"),
            "[0, 1, 0, 2]");
}

TEST(SelectAndScatter, PaddingIsNeverChosen) {
  EXPECT_EQ(select_and_scatter("[-3, -1, -5, -2]", "[1, 2, 4, 8, 16]", 5,
                               "window_dimensions = [2], padding = [[1, 1]]"),
            "[1, 6, 0, 24]");
}

// --- Sort

std::string sort(std::string_view type, std::string_view x, std::string_view attributes,
                 std::string_view comparison = "LT") {
  const std::string element = fmt::format("{}[]", type.substr(0, type.find('[')));
  return eval(
      constant("x", type, x) +
          fmt::format("%r = stablehlo.sort(%x) {{{}}} ({}) : {}", attributes,
                      compare_region(fmt::format("comparison_direction = {}", comparison), element),
                      type),
      "%r", type);
}

TEST(Sort, AlongAnyDimension) {
  EXPECT_EQ(sort("s32[5]", "[3, 1, 2, 1, 0]", "dimension = 0"), "[0, 1, 1, 2, 3]");
  EXPECT_EQ(sort("s32[5]", "[3, 1, 2, 1, 0]", "dimension = -1", "GT"), "[3, 2, 1, 1, 0]");
  EXPECT_EQ(sort("s32[2,3]", "[[3, 1, 2], [0, 5, 4]]", "dimension = 1"), "[[1, 2, 3], [0, 4, 5]]");
  EXPECT_EQ(sort("s32[2,3]", "[[3, 1, 2], [0, 5, 4]]", "dimension = -2"), "[[0, 1, 2], [3, 5, 4]]");
  EXPECT_EQ(sort("s32[0]", "", "dimension = 0"), "[]");
  EXPECT_EQ(sort("s32[2,0]", "", "dimension = 0"), "[[], []]");
  EXPECT_EQ(sort("s32[1]", "[7]", "dimension = 0"), "[7]");
}

TEST(Sort, IsStableAndCarriesOtherOperands) {
  EXPECT_EQ(
      eval(constant("k", "s32[6]", "[2, 1, 2, 1, 2, 1]") +
               constant("v", "s32[6]", "[0, 1, 2, 3, 4, 5]") +
               fmt::format("%r:2 = stablehlo.sort(%k, %v) {{dimension = 0}} ({}) : s32[6], s32[6]",
                           compare_region("comparison_direction = LT", "s32[]", 4)),
           "%r#0, %r#1", "s32[6], s32[6]"),
      "[1, 1, 1, 2, 2, 2]; [1, 3, 5, 0, 2, 4]");
}

TEST(Sort, TotalOrderPlacesNansAndZeros) {
  EXPECT_EQ(sort("f32[6]", "[0x7FC00000, 0, -0.0, inf, -inf, 0xFFC00000]", "dimension = 0",
                 "LT, compare_type = TOTALORDER"),
            "[nan, -inf, -0, 0, inf, nan]");
}

TEST(Sort, ANanUnderAFloatComparisonMovesNothingOutOfTheArray) {
  const std::string sorted = sort("f32[7]", "[3, nan, 1, nan, 2, nan, 0]", "dimension = 0");
  for (const char* element : {"0", "1", "2", "3"})
    EXPECT_NE(sorted.find(element), std::string::npos) << sorted;
}

TEST(Sort, AComparatorThatIsNoOrderIsSafe) {
  for (const char* answer : {"true", "false"}) {
    std::string values = "[";
    for (int i = 0; i < 100; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i);
    const std::string sorted =
        eval(constant("x", "s32[100]", values + "]") +
                 fmt::format(
                     "%r = stablehlo.sort(%x) {{dimension = 0}} ({}) : s32[100]",
                     region(2, "s32[]", constant("a", "pred[]", answer) + "stablehlo.return(%a)")),
             "%r", "s32[100]");
    EXPECT_NE(sorted.find("99"), std::string::npos) << sorted;
  }
}

TEST(Map, CallsItsBodyOnScalars) {
  EXPECT_EQ(eval(constant("x", "s32[2]", "[1, 2]") + constant("y", "s32[2]", "[10, 20]") +
                     fmt::format("%r = stablehlo.map(%x, %y) {{dimensions = [0]}} ({}) : s32[2]",
                                 binary_region("multiply", "s32[]")),
                 "%r", "s32[2]"),
            "[10, 40]");
}

}  // namespace
}  // namespace tenon::hlo
