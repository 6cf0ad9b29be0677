// Convolutions of few places, or of few products a result, become products of matrices with the
// same results, and read or write the large array as it lies. Sums of whole numbers are exact.
#include <gtest/gtest.h>

#include <map>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

struct Convolved {
  std::string x, w, r, numbers;  // "2x3", "16x32x3x3" …, and dimension numbers.
  std::string window;            // ", pad = …"
  std::string type = "f32";
  std::string groups = "1";
};

std::string text_of(const Convolved& c) {
  return fmt::format(
      R"(func.func @main(%x: tensor<{0}x{5}>, %w: tensor<{1}x{5}>) -> tensor<{2}x{5}> {{
  %r = stablehlo.convolution(%x, %w) dim_numbers = {3}, window = {{{4}}}
      {{batch_group_count = 1 : i64, feature_group_count = {6} : i64}} : (tensor<{0}x{5}>, tensor<{1}x{5}>) -> tensor<{2}x{5}>
  return %r : tensor<{2}x{5}>
}})",
      c.x, c.w, c.r, c.numbers, c.window, c.type, c.groups);
}

Result<bool> with_wide_tiles(Module& module) {
  PassOptions options;
  options.cost.wide_tiles = true;
  return make_convolution_products(module, options);
}

std::map<OpCode, int> ops_of(const Module& module) {
  std::map<OpCode, int> counts;
  for (const Instruction& op : *module.entry()) ++counts[op.code()];
  return counts;
}

std::string result_of_whole_numbers(const Module& module) {
  Random random(5);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal literal(module.entry()->parameter(i).type().shape());
    for (int64_t n = 0; n < literal.element_count(); ++n)
      literal.set_double(n, static_cast<double>(random.below(7) - 3));
    arguments.push_back(std::move(literal));
  }
  const auto results = Evaluator(module).run(*module.entry(), arguments);
  return results ? (*results)[0].to_string() : results.error().message();
}

// Whether the pass made a product of the convolution, which has the same results.
bool becomes_product(const Convolved& c) {
  const auto before = import_module(text_of(c), "t");
  EXPECT_TRUE(before) << before.error().to_string();
  if (!before) return false;
  const std::unique_ptr<Module> after = (*before)->clone();
  const auto changed = with_wide_tiles(*after);
  EXPECT_TRUE(changed && eliminate_dead(*after) && verify(*after).ok());
  EXPECT_EQ(result_of_whole_numbers(*after), result_of_whole_numbers(**before)) << c.numbers;
  auto ops = ops_of(*after);
  EXPECT_EQ(ops[OpCode::kConvolution], *changed ? 0 : 1);
  EXPECT_EQ(ops[OpCode::kDotGeneral], *changed ? 1 : 0);
  return *changed;
}

// Filters as in PyTorch: [outputs, inputs, window].
const std::string kForward = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]";
const std::string kByInput = "[b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]";
const std::string kByFilter = "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]";

TEST(ConvolutionProducts, FewPlaces) {
  EXPECT_TRUE(
      becomes_product({"2x40x2x2", "48x40x3x3", "2x48x2x2", kForward, "pad = [[1, 1], [1, 1]]"}));
  EXPECT_TRUE(becomes_product(
      {"1x40x5x6", "48x40x3x3", "1x48x2x3", kForward, "stride = [2, 2], pad = [[0, 0], [1, 0]]"}))
      << "a window that moves by two";
  EXPECT_TRUE(becomes_product({"1x40x5x6", "48x40x3x3", "1x48x3x6", kForward,
                               "pad = [[1, 1], [2, 2]], rhs_dilate = [2, 2], reverse = [0, 1]"}))
      << "a dilated window, half reversed";
  EXPECT_TRUE(becomes_product(
      {"2x40x4", "120x40x4", "2x3x120", "[b, f, 0]x[o, i, 0]->[b, 0, f]", "pad = [[1, 1]]"}))
      << "of one dimension";
}

TEST(ConvolutionProducts, GradientsByAnInput) {
  EXPECT_TRUE(becomes_product(
      {"2x48x2x3", "48x40x3x3", "2x40x2x3", kByInput, "pad = [[1, 1], [1, 1]], reverse = [1, 1]"}));
  EXPECT_TRUE(becomes_product({"2x48x2x2", "48x40x3x3", "2x40x4x4", kByInput,
                               "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2], reverse = [1, 1]"}))
      << "of a window that moves by two";
  EXPECT_TRUE(becomes_product({"2x128x2x2", "128x130x1x1", "2x130x4x4", kByInput,
                               "pad = [[0, 1], [0, 1]], lhs_dilate = [2, 2]"}))
      << "of a window of one place";
  EXPECT_TRUE(becomes_product({"2x3x3x48", "3x2x64x48", "2x3x3x64",
                               "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
                               "pad = [[1, 1], [0, 1]], reverse = [1, 1]"}))
      << "of JAX, which ends in features";
}

TEST(ConvolutionProducts, OfNoPlacesAreZeros) {
  becomes_product({"2x64x0x0", "64x32x3x3", "2x32x2x2", kByInput,
                   "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"});
}

TEST(ConvolutionProducts, GradientsByAFilter) {
  EXPECT_TRUE(
      becomes_product({"2x40x2x3", "2x48x2x3", "48x40x3x3", kByFilter, "pad = [[1, 1], [1, 1]]"}));
  EXPECT_TRUE(becomes_product({"2x40x4x4", "2x48x2x2", "48x40x3x3", kByFilter,
                               "pad = [[1, 0], [1, 0]], rhs_dilate = [2, 2]"}))
      << "of a window that moves by two";
  EXPECT_TRUE(
      becomes_product({"2x3x3x40", "2x3x3x48", "3x3x40x48",
                       "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]"}))
      << "of JAX, which ends in features";
  EXPECT_TRUE(
      becomes_product({"2x40x6x8", "2x48x6x8", "48x40x3x3", kByFilter, "pad = [[1, 1], [1, 1]]"}))
      << "twice as many products as outputs";
}

// The filter is an operand of the product by a view.
TEST(ConvolutionProducts, LargeArraysStayAsTheyLie) {
  for (const Convolved& c :
       {Convolved{"2x40x2x2", "48x40x3x3", "2x48x2x2", kForward, "pad = [[1, 1], [1, 1]]"},
        Convolved{"2x48x2x2", "48x40x3x3", "2x40x2x2", kByInput,
                  "pad = [[1, 1], [1, 1]], reverse = [1, 1]"}}) {
    auto module = import_module(text_of(c), "t");
    ASSERT_TRUE(module && with_wide_tiles(**module));
    for (const Instruction& op : *(*module)->entry()) {
      if (op.code() != OpCode::kDotGeneral) continue;
      EXPECT_EQ(op.operand(1).def->code(), OpCode::kReshape);
      EXPECT_EQ(op.operand(1).def->operand(0), (*module)->entry()->parameter(1));
    }
  }
  auto module = import_module(
      text_of({"2x40x2x2", "2x48x2x2", "48x40x3x3", kByFilter, "pad = [[1, 1], [1, 1]]"}), "t");
  ASSERT_TRUE(module && with_wide_tiles(**module));
  const Instruction& result = *(*module)->entry()->last();
  EXPECT_EQ(result.operand(0).def->code(), OpCode::kReshape);
  EXPECT_EQ(result.operand(0).def->operand(0).def->code(), OpCode::kDotGeneral);
}

TEST(ConvolutionProducts, OthersStay) {
  const std::string same = "pad = [[1, 1], [1, 1]]";
  EXPECT_FALSE(becomes_product({"2x40x5x5", "48x40x3x3", "2x48x5x5", kForward, same}))
      << "many places";
  EXPECT_FALSE(becomes_product({"2x48x5x5", "48x40x3x3", "2x40x5x5", kByInput, same}))
      << "many places";
  EXPECT_FALSE(becomes_product({"2x40x7x8", "2x48x7x8", "48x40x3x3", kByFilter, same}))
      << "many products";
  EXPECT_FALSE(becomes_product({"2x8x2x2", "16x8x3x3", "2x16x2x2", kForward, same}))
      << "a small filter";
  EXPECT_FALSE(becomes_product(
      {"2x2x2x40", "3x3x40x48", "2x2x2x48", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", same}))
      << "a filter that tiles read where it lies";
  EXPECT_FALSE(becomes_product(
      {"2x6x8x40", "2x6x8x48", "3x3x40x48", "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", same}))
      << "rows that tiles store";
  EXPECT_FALSE(becomes_product({"2x40x2x2", "48x20x3x3", "2x48x2x2", kForward, same, "f32", "2"}))
      << "groups";
  EXPECT_FALSE(becomes_product({"2x48x2x2", "48x40x3x3", "2x40x2x2", kByInput, same, "f16"}))
      << "sums of the places of a window would be rounded";
  EXPECT_FALSE(becomes_product({"1x40x8x8", "48x40x7x7", "1x48x2x2", kForward, ""}))
      << "many parts";
}

// Planes of the products of each place of the input with the whole filter, which are shifted and
// summed.
TEST(ConvolutionProducts, FewOutputs) {
  const std::string same = "pad = [[1, 1], [1, 1]]";
  const std::string of_jax = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
  EXPECT_TRUE(becomes_product({"2x12x13x24", "3x3x24x3", "2x12x13x3", of_jax, same}));
  EXPECT_TRUE(becomes_product({"1x24x16x20", "1x24x3x3", "1x1x16x20", kForward, same}))
      << "one output, of PyTorch";
  EXPECT_TRUE(becomes_product(
      {"2x28x21x20", "7x28x3x5", "2x7x17x16", kForward, "rhs_dilate = [2, 1], reverse = [1, 0]"}))
      << "a dilated window, half reversed, without padding";
  EXPECT_TRUE(becomes_product({"2x9x9x17", "2x17x4x4", "2x2x18x18",
                               "[b, 0, 1, f]x[o, i, 0, 1]->[b, f, 0, 1]",
                               "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}))
      << "an input with gaps";
  EXPECT_TRUE(becomes_product(
      {"40x16x50", "5x16x3", "50x40x3", "[0, f, b]x[0, i, o]->[b, 0, f]", "pad = [[2, 2]]"}))
      << "of one dimension, the batch last";
  EXPECT_TRUE(becomes_product({"2x12x13x24", "3x3x24x3", "2x12x13x3", of_jax, same, "bf16"}))
      << "sums in f32";
  EXPECT_FALSE(becomes_product({"2x12x13x24", "3x3x24x8", "2x12x13x8", of_jax, same}))
      << "eight outputs, a tile";
  EXPECT_FALSE(
      becomes_product({"1x24x24x16", "7x7x16x3", "1x24x24x3", of_jax, "pad = [[3, 3], [3, 3]]"}))
      << "more planes than the input has";
  EXPECT_FALSE(becomes_product({"2x12x13x8", "3x3x8x3", "2x12x13x3", of_jax, same}))
      << "few features";
  EXPECT_FALSE(becomes_product(
      {"2x24x25x24", "3x3x24x3", "2x12x13x3", of_jax, "stride = [2, 2], pad = [[1, 1], [1, 1]]"}))
      << "most products would not be used";
}

// A matrix of the input at each place of the filter, whose rows lie as the gradient of the results.
TEST(ConvolutionProducts, GradientsByAFilterOfFewOutputs) {
  const std::string same = "pad = [[1, 1], [1, 1]]";
  EXPECT_TRUE(becomes_product(
      {"2x40x16x14", "2x3x16x14", "3x40x3x3", "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", same}));
  EXPECT_TRUE(becomes_product(
      {"2x12x14x40", "2x12x14x3", "3x3x40x3", "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", same}))
      << "of JAX";
  EXPECT_TRUE(becomes_product({"6x40x16x14", "6x3x8x7", "3x40x3x3",
                               "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]",
                               "pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]"}))
      << "of a window that moves by two";
  EXPECT_TRUE(becomes_product(
      {"2x32x28x40", "2x32x28x1", "1x40x1x1", "[f, 0, 1, b]x[i, 0, 1, o]->[f, b, 0, 1]", ""}))
      << "of a window of one place";
  EXPECT_FALSE(
      becomes_product({"2x40x16x14", "2x3x16x14", "3x40x8x8",
                       "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", "pad = [[4, 3], [4, 3]]"}))
      << "many places";
}

// An infinity where a place of the result does not read.
TEST(ConvolutionProducts, PlacesReadNothingElse) {
  const auto module = import_module(R"(func.func @main() -> tensor<8x2x5xf32> {
  %i = stablehlo.constant dense<0x7F800000> : tensor<8x1x1xf32>
  %o = stablehlo.constant dense<1.0> : tensor<8x1x1029xf32>
  %x = stablehlo.concatenate %i, %o, dim = 2 : (tensor<8x1x1xf32>, tensor<8x1x1029xf32>) -> tensor<8x1x1030xf32>
  %w = stablehlo.constant dense<0.5> : tensor<2x1x1025xf32>
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[-1, 0]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x1x1030xf32>, tensor<2x1x1025xf32>) -> tensor<8x2x5xf32>
  return %r : tensor<8x2x5xf32>
})",
                                    "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto changed = with_wide_tiles(**module);
  ASSERT_TRUE(changed && *changed && eliminate_dead(**module));
  const auto results = Evaluator(**module).run(*(*module)->entry(), std::vector<Literal>());
  ASSERT_TRUE(results);
  for (int64_t n = 0; n < 80; ++n) EXPECT_EQ((*results)[0].get_double(n), 512.5);
}

TEST(ConvolutionProducts, NarrowFloatsOfFewPlacesRoundOnce) {
  EXPECT_TRUE(becomes_product(
      {"2x40x2x2", "48x40x3x3", "2x48x2x2", kForward, "pad = [[1, 1], [1, 1]]", "bf16"}));
}

TEST(ConvolutionProducts, StayWhereTilesAreNotWide) {
  auto module = import_module(
      text_of({"2x40x2x2", "48x40x3x3", "2x48x2x2", kForward, "pad = [[1, 1], [1, 1]]"}), "t");
  const auto changed = make_convolution_products(**module, {});
  EXPECT_TRUE(changed && !*changed);
}

// Whether the pass exchanged the convolution's sides, which changes no result.
bool exchanges_sides(const Convolved& c) {
  const auto before = import_module(text_of(c), "t");
  EXPECT_TRUE(before) << before.error().to_string();
  if (!before) return false;
  const std::unique_ptr<Module> after = (*before)->clone();
  const auto changed = make_convolution_products(*after, {});
  EXPECT_TRUE(changed && eliminate_dead(*after) && verify(*after).ok());
  EXPECT_EQ(result_of_whole_numbers(*after), result_of_whole_numbers(**before)) << c.window;
  auto ops = ops_of(*after);
  EXPECT_EQ(ops[OpCode::kConvolution], 1);
  EXPECT_EQ(ops[OpCode::kReverse], *changed ? 1 : 0);
  for (const Instruction& op : *after->entry()) {
    if (!*changed || op.code() != OpCode::kConvolution) continue;
    EXPECT_EQ(op.attribute(AttrKey::lhs_dilation), nullptr);
    EXPECT_EQ(op.operand(0), after->entry()->parameter(1));
  }
  return *changed;
}

// The gradient by the filter of a transposed convolution.
TEST(ConvolutionProducts, InputsWithGapsAreTheFilter) {
  const std::string numbers = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]";
  EXPECT_TRUE(exchanges_sides(
      {"2x4x4x5", "2x8x8x3", "4x4x5x3", numbers, "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}));
  EXPECT_TRUE(exchanges_sides(
      {"2x3x4x5", "2x9x8x3", "3x4x5x3", numbers, "pad = [[3, 1], [1, -3]], lhs_dilate = [3, 4]"}))
      << "gaps and padding that differ";
  EXPECT_TRUE(exchanges_sides(
      {"2x1x4x5", "2x6x8x3", "2x3x5x3", numbers, "pad = [[7, -1], [1, 2]], lhs_dilate = [1, 2]"}))
      << "gaps along one dimension";
  EXPECT_TRUE(exchanges_sides({"2x5x4", "2x3x8", "5x3x3", "[f, b, 0]x[i, o, 0]->[b, f, 0]",
                               "pad = [[2, 1]], lhs_dilate = [2]"}))
      << "of one dimension";
}

TEST(ConvolutionProducts, PrecisionsGoWithTheirSides) {
  const auto module = import_module(
      R"(func.func @main(%x: tensor<2x4x5xf32>, %w: tensor<2x8x3xf32>) -> tensor<4x5x3xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {pad = [[2, 2]], lhs_dilate = [2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x5xf32>, tensor<2x8x3xf32>) -> tensor<4x5x3xf32>
  return %r : tensor<4x5x3xf32>
})",
      "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto changed = make_convolution_products(**module, {});
  ASSERT_TRUE(changed && *changed);
  EXPECT_NE(print_module(**module).find("precision_config = [DEFAULT, HIGHEST]"), std::string::npos)
      << print_module(**module);
}

TEST(ConvolutionProducts, OthersKeepTheirSides) {
  EXPECT_FALSE(
      exchanges_sides({"2x8x8x5", "4x4x5x3", "2x16x16x3", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
                       "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}))
      << "a transposed convolution";
  EXPECT_FALSE(
      exchanges_sides({"2x2x2x5", "3x3x4x5", "2x4x4x4", "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
                       "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]"}))
      << "of fewer places than its filter has";
  const std::string numbers = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]";
  EXPECT_FALSE(exchanges_sides({"2x4x4x5", "2x8x8x3", "2x2x5x3", numbers,
                                "stride = [2, 2], pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}));
  EXPECT_FALSE(exchanges_sides({"2x4x4x5", "2x8x8x3", "4x4x5x3", numbers,
                                "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2], reverse = [1, 0]"}));
  EXPECT_FALSE(
      exchanges_sides({"2x8x8x5", "2x8x8x3", "5x5x5x3", numbers, "pad = [[2, 2], [2, 2]]"}))
      << "without gaps";
}

// A constant filter is laid out for tiles as the program is compiled.
TEST(ConvolutionProducts, StayWithConstantFilters) {
  auto module = import_module(R"(func.func @main(%x: tensor<2x40x2x2xf32>) -> tensor<2x48x2x2xf32> {
  %w = stablehlo.constant dense<2.0> : tensor<48x40x3x3xf32>
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x40x2x2xf32>, tensor<48x40x3x3xf32>) -> tensor<2x48x2x2xf32>
  return %r : tensor<2x48x2x2xf32>
})",
                              "t");
  ASSERT_TRUE(module);
  const auto changed = with_wide_tiles(**module);
  EXPECT_TRUE(changed && !*changed);
}

}  // namespace
}  // namespace tenon::hlo
