// Layouts of windows, convolutions and transposes: the passes change no bit, and leave alone what
// would not gain.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

struct PooledGradient {
  std::string dims, pooled, window, strides;
  std::string padding = "[0, 0], [0, 0], [0, 0], [0, 0]";
};

std::unique_ptr<Module> module_of(const PooledGradient& g) {
  auto made = import_module(
      fmt::format(R"(func.func @main(%x: tensor<{0}xf32>, %g: tensor<{1}xf32>) -> tensor<{0}xf32> {{
  %z = stablehlo.constant dense<1.5> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %g, %z) <{{window_dimensions = array<i64: {2}>,
      window_strides = array<i64: {3}>, padding = dense<[{4}]> : tensor<4x2xi64>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) : (tensor<{0}xf32>, tensor<{1}xf32>, tensor<f32>) -> tensor<{0}xf32>
  return %r : tensor<{0}xf32>
}})",
                  g.dims, g.pooled, g.window, g.strides, g.padding),
      "t");
  EXPECT_TRUE(made) << made.error().to_string();
  return std::move(*made);
}

bool is_changed(const PooledGradient& g) {
  const auto module = module_of(g);
  const auto changed = lay_out_windows(*module);
  EXPECT_TRUE(changed && verify(*module).ok());
  return changed && *changed;
}

// Few different numbers, so that windows have several greatest elements.
Literal random_literal(const Type& type, Random& random) {
  Literal literal(type.shape());
  for (int64_t i = 0; i < literal.element_count(); ++i)
    literal.set_double(i, static_cast<double>(random.below(7)) / 3);
  return literal;
}

std::string result_of(const Module& module, const std::vector<Literal>& arguments) {
  const auto results = Evaluator(module).run(*module.entry(), arguments);
  return results ? (*results)[0].to_string() : results.error().message();
}

// Whether the pass changed the Module, and none of its results.
bool changes_no_bit(const Module& before, Result<bool> (*pass)(Module&), std::string_view text,
                    uint64_t seed) {
  Random random(seed);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < before.entry()->parameter_count(); ++i)
    arguments.push_back(random_literal(before.entry()->parameter(i).type(), random));
  auto module = import_module(text, "t");
  const auto changed = pass(**module);
  EXPECT_TRUE(changed && verify(**module).ok());
  EXPECT_EQ(result_of(**module, arguments), result_of(before, arguments));
  return changed && *changed;
}

const PooledGradient kOverlapping = {"2x12x12x12", "2x12x6x6", "1, 1, 3, 3", "1, 1, 2, 2",
                                     "[0, 0], [0, 0], [1, 0], [1, 0]"};

TEST(WindowLayouts, ChangeNoBit) {
  Random random(7);
  for (const PooledGradient& g :
       {kOverlapping, PooledGradient{"3x8x10x10", "3x8x5x5", "1, 1, 2, 2", "1, 1, 2, 2"},
        PooledGradient{"20x11x3x12", "20x10x3x6", "1, 2, 1, 2", "1, 1, 1, 2"},
        PooledGradient{"12x9x5x4", "4x9x5x3", "3, 1, 1, 3", "3, 1, 1, 1",
                       "[0, 0], [0, 0], [0, 0], [1, 0]"}}) {
    const auto module = module_of(g);
    std::vector<Literal> arguments;
    for (size_t i = 0; i < 2; ++i)
      arguments.push_back(random_literal(module->entry()->parameter(i).type(), random));
    const std::string expected = result_of(*module, arguments);
    const auto changed = lay_out_windows(*module);
    ASSERT_TRUE(changed && *changed) << g.dims;
    ASSERT_TRUE(verify(*module).ok());
    EXPECT_EQ(result_of(*module, arguments), expected) << g.dims;
  }
}

TEST(WindowLayouts, AreChangedWhereAVectorGains) {
  EXPECT_TRUE(is_changed(kOverlapping));
  EXPECT_FALSE(is_changed({"2x3x24x24", "2x3x12x12", "1, 1, 2, 2", "1, 1, 2, 2"}))
      << "few channels";
  EXPECT_FALSE(is_changed({"1x8x4x4", "1x8x2x2", "1, 1, 2, 2", "1, 1, 2, 2"})) << "few elements";
  EXPECT_FALSE(is_changed({"2x12x12x12", "2x6x6x12", "1, 2, 2, 1", "1, 2, 2, 1"}))
      << "last already";
}

// Each window selects once; equal elements, NaN, windows of padding alone and overlaps included.
TEST(WindowChoices, ChangeNoBit) {
  Random random(5);
  for (const PooledGradient& g :
       {kOverlapping,
        PooledGradient{"2x9x9x8", "2x9x9x8", "1, 5, 5, 1", "1, 1, 1, 1",
                       "[0, 0], [2, 2], [2, 2], [0, 0]"},
        PooledGradient{"1x7x50x4", "1x1x1x4", "1, 7, 50, 1", "1, 7, 50, 1"},
        PooledGradient{"1x7x50x4", "1x1x1x4", "1, 7, 50, 1", "1, 1, 1, 1"},
        PooledGradient{"2x11x10x9", "2x5x10x3", "1, 2, 1, 3", "1, 2, 1, 3"},
        PooledGradient{"1x40x8x8", "1x71x8x8", "1, 20, 1, 1", "1, 1, 1, 1",
                       "[0, 0], [25, 25], [0, 0], [0, 0]"}}) {
    const auto module = module_of(g);
    std::vector<Literal> arguments;
    for (size_t i = 0; i < 2; ++i)
      arguments.push_back(random_literal(module->entry()->parameter(i).type(), random));
    arguments[0].set_double(17, std::nan(""));
    arguments[0].set_double(40, -HUGE_VAL);
    const std::string expected = result_of(*module, arguments);
    const auto changed = choose_in_windows(*module);
    ASSERT_TRUE(changed && *changed) << g.dims;
    ASSERT_TRUE(verify(*module).ok());
    EXPECT_EQ(result_of(*module, arguments), expected) << g.dims;
  }
}

TEST(WindowChoices, AreMadeWhereWindowsMeet) {
  const auto made = [](const PooledGradient& g) {
    const auto changed = choose_in_windows(*module_of(g));
    return changed && *changed;
  };
  EXPECT_TRUE(made({"2x24x24x8", "2x12x12x8", "1, 2, 2, 1", "1, 2, 2, 1"})) << "side by side";
  EXPECT_FALSE(made(
      {"2x24x25x8", "2x12x13x8", "1, 2, 2, 1", "1, 2, 2, 1", "[0, 0], [0, 0], [0, 1], [0, 0]"}))
      << "nor meet";
  EXPECT_FALSE(
      made({"1x5x5x4", "1x5x5x4", "1, 3, 3, 1", "1, 1, 1, 1", "[0, 0], [1, 1], [1, 1], [0, 0]"}))
      << "few elements";
}

// Sums of few integers are exact in any order.
bool moves_convolution(const std::string& x, const std::string& w, const std::string& r,
                       const std::string& numbers, const std::string& more = "") {
  const std::string text =
      fmt::format(R"(func.func @main(%x: tensor<{0}xf32>, %w: tensor<{1}xf32>) -> tensor<{2}xf32> {{
  %k = stablehlo.constant dense<3.0> : tensor<{0}xf32>
  %l = stablehlo.constant dense<3.0> : tensor<{1}xf32>
  %a = stablehlo.multiply %x, %k : tensor<{0}xf32>
  %b = stablehlo.multiply %w, %l : tensor<{1}xf32>
  %c = stablehlo.round_nearest_even %a : tensor<{0}xf32>
  %d = stablehlo.round_nearest_even %b : tensor<{1}xf32>
  %r = stablehlo.convolution(%c, %d) dim_numbers = {3}, window = {{stride = [1, 1]{4}}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{0}xf32>, tensor<{1}xf32>) -> tensor<{2}xf32>
  return %r : tensor<{2}xf32>
}})",
                  x, w, r, numbers, more);
  const auto before = import_module(text, "t");
  EXPECT_TRUE(before) << before.error().to_string();
  return before &&
         changes_no_bit(
             **before, [](Module& module) { return lay_out_convolutions(module); }, text, 3);
}

TEST(ConvolutionLayouts, ChangeNoBit) {
  const std::string same = ", pad = [[1, 1], [1, 1]]";
  const std::string first = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]";
  EXPECT_TRUE(moves_convolution("2x32x8x8", "16x32x3x3", "2x16x8x8", first, same));
  EXPECT_TRUE(moves_convolution("1x16x20x20", "32x16x3x3", "1x32x18x18", first));
  EXPECT_TRUE(moves_convolution("4x16x9x7", "16x16x4x5", "4x16x9x7", first,
                                ", pad = [[3, 3], [4, 4]], rhs_dilate = [2, 2]"))
      << "a dilated window";
  EXPECT_TRUE(
      moves_convolution("2x32x8x8", "16x32x3x3", "2x16x8x8", first, same + ", reverse = [1, 1]"));
  EXPECT_TRUE(moves_convolution("16x20x9x8", "16x20x7x6", "20x20x3x3",
                                "[f, b, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]"))
      << "the gradient of a filter";
}

TEST(ConvolutionLayouts, AreChangedWhereTilesGain) {
  const std::string same = ", pad = [[1, 1], [1, 1]]";
  EXPECT_FALSE(moves_convolution("2x8x8x32", "3x3x32x16", "2x8x8x16",
                                 "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", same));
  EXPECT_FALSE(moves_convolution("1x8x20x20", "8x8x3x3", "1x8x20x20",
                                 "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", same))
      << "few features";
  EXPECT_FALSE(moves_convolution("1x32x20x20", "32x32x1x1", "1x32x20x20",
                                 "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"))
      << "a window of one place";
}

// --- Arrays that end in features throughout a network, where tiles are wide

Result<bool> lay_out_by_features(Module& module) {
  PassOptions options;
  options.cost.wide_tiles = true;
  return lay_out_convolutions(module, options);
}

// The transposes that are left when those that meet are gone.
int64_t transposes_left(std::string_view text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  const auto changed = lay_out_by_features(**module);
  EXPECT_TRUE(changed && simplify(**module));
  int64_t count = 0;
  for (const Instruction& op : *(*module)->entry()) count += op.code() == OpCode::kTranspose;
  return count;
}

// Each number is whole, so that every sum is exact.
const std::string kNetwork =
    R"(func.func @main(%in: tensor<4x16x8x8xf32>, %w: tensor<3x3x16x16xf32>, %b: tensor<16xf32>) -> (tensor<4x32xf32>) {
  %three = stablehlo.constant dense<3.0> : tensor<4x16x8x8xf32>
  %scaled = stablehlo.multiply %in, %three : tensor<4x16x8x8xf32>
  %x = stablehlo.round_nearest_even %scaled : tensor<4x16x8x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<4x16x8x8xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %u = stablehlo.round_nearest_even %w : tensor<3x3x16x16xf32>
  %c = stablehlo.convolution(%x, %u) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<3x3x16x16xf32>) -> tensor<4x16x8x8xf32>
  %rb = stablehlo.round_nearest_even %b : tensor<16xf32>
  %bias = stablehlo.broadcast_in_dim %rb, dims = [1] : (tensor<16xf32>) -> tensor<4x16x8x8xf32>
  %sum = stablehlo.add %c, %bias : tensor<4x16x8x8xf32>
  %relu = stablehlo.maximum %sum, %zero : tensor<4x16x8x8xf32>
  %pooled = "stablehlo.reduce_window"(%relu, %least) <{window_dimensions = array<i64: 1, 1, 2, 3>, window_strides = array<i64: 1, 1, 1, 1>,
      padding = dense<[[0, 0], [0, 0], [0, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<4x16x8x8xf32>, tensor<f32>) -> tensor<4x16x8x8xf32>
  %both = stablehlo.concatenate %pooled, %relu, dim = 1 : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x32x8x8xf32>
  %padded = stablehlo.pad %both, %none, low = [0, 0, 1, 0], high = [0, 0, 0, 2], interior = [0, 0, 0, 0]
      : (tensor<4x32x8x8xf32>, tensor<f32>) -> tensor<4x32x9x10xf32>
  %part = stablehlo.slice %padded [0:4, 0:32, 0:9:2, 1:10] : (tensor<4x32x9x10xf32>) -> tensor<4x32x5x9xf32>
  %mean = stablehlo.reduce(%part init: %none) applies stablehlo.add across dimensions = [2, 3] : (tensor<4x32x5x9xf32>, tensor<f32>) -> tensor<4x32xf32>
  return %mean : tensor<4x32xf32>
})";

TEST(FeaturesLast, ChangeNoBit) {
  const auto before = import_module(kNetwork, "t");
  ASSERT_TRUE(before) << before.error().to_string();
  EXPECT_TRUE(changes_no_bit(**before, lay_out_by_features, kNetwork, 11));
}

TEST(FeaturesLast, TransposesAreBeforeAndBehindTheNetworkAlone) {
  // The result of the mean has no places, so that only the input is transposed.
  EXPECT_EQ(transposes_left(kNetwork), 1);
}

const std::string kResidual =
    R"(func.func @main(%x: tensor<1x32x14x14xf32>, %w: tensor<3x3x32x32xf32>, %v: tensor<32x32x1x1xf32>) -> tensor<1x32x14x14xf32> {
  %one = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x14x14xf32>, tensor<3x3x32x32xf32>) -> tensor<1x32x14x14xf32>
  %two = stablehlo.convolution(%one, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x14x14xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x14x14xf32>
  %sum = stablehlo.add %two, %one : tensor<1x32x14x14xf32>
  %three = stablehlo.convolution(%sum, %w) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x14x14xf32>, tensor<3x3x32x32xf32>) -> tensor<1x32x14x14xf32>
  return %three : tensor<1x32x14x14xf32>
})";

// Nothing that is left behind reads what others would fuse.
TEST(FeaturesLast, NothingIsLeftBehind) {
  auto module = import_module(kNetwork, "t");
  ASSERT_TRUE(module && lay_out_by_features(**module));
  for (const Instruction& op : *(*module)->entry())
    EXPECT_TRUE(!op.uses().empty() || op.has_side_effect() || op.code() == OpCode::kReturn)
        << op.info().name;
}

TEST(FeaturesLast, ResidualsAndProductsOfOnePlaceKeepTheLayout) {
  EXPECT_EQ(transposes_left(kResidual), 2);  // Of the input and of the result.
  // As the driver does, which makes products of convolutions of one place before.
  auto module = import_module(kResidual, "t");
  ASSERT_TRUE(module && simplify(**module));
  const auto changed = lay_out_by_features(**module);
  ASSERT_TRUE(changed && simplify(**module) && verify(**module).ok());
  int64_t count = 0;
  for (const Instruction& op : *(*module)->entry()) count += op.code() == OpCode::kTranspose;
  EXPECT_EQ(count, 2);
}

TEST(FeaturesLast, ArraysKeepTheirOrderWhereTilesAreNotWide) {
  auto module = import_module(kNetwork, "t");
  const auto changed = lay_out_convolutions(**module);
  ASSERT_TRUE(changed);
  int64_t reduces = 0;
  for (const Instruction& op : *(*module)->entry()) {
    if (op.code() != OpCode::kReduceWindow) continue;
    EXPECT_EQ(op.result_type().dims(), Dims({4, 16, 8, 8}));
    ++reduces;
  }
  EXPECT_EQ(reduces, 1);
}

// The first of equal elements is another one in another order of dimensions.
TEST(FeaturesLast, RegionsThatDoNotCommuteKeepTheOrder) {
  const auto program = [](const std::string& combined, const std::string& result) {
    return fmt::format(
        R"(func.func @main(%x: tensor<2x32x18x20xf32>, %w: tensor<32x32x3x3xf32>) -> {1} {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %u = stablehlo.round_nearest_even %x : tensor<2x32x18x20xf32>
  %v = stablehlo.round_nearest_even %w : tensor<32x32x3x3xf32>
  %m = stablehlo.convolution(%u, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{pad = [[1, 1], [1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<2x32x18x20xf32>, tensor<32x32x3x3xf32>) -> tensor<2x32x18x20xf32>
  %r = {0} ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare NE, %a, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %s = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<2x32x18x20xf32>, tensor<f32>) -> {1}
  return %r : {1}
}})",
        combined, result);
  };
  const std::string all = R"("stablehlo.reduce"(%m, %z) <{dimensions = array<i64: 1, 2, 3>}>)";
  const std::string places = R"("stablehlo.reduce"(%m, %z) <{dimensions = array<i64: 2, 3>}>)";
  const std::string window =
      R"("stablehlo.reduce_window"(%m, %z) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}>)";
  // The input and the filter have one each, and there is one behind the convolution.
  EXPECT_EQ(transposes_left(program(all, "tensor<2xf32>")), 3);
  EXPECT_EQ(transposes_left(program(window, "tensor<2x16x9x20xf32>")), 3);
  EXPECT_EQ(transposes_left(program(places, "tensor<2x32xf32>")), 2);
  for (const auto& [combined, result] : {std::pair(all, "tensor<2xf32>"),
                                         {window, "tensor<2x16x9x20xf32>"},
                                         {places, "tensor<2x32xf32>"}}) {
    const std::string text = program(combined, result);
    const auto before = import_module(text, "t");
    ASSERT_TRUE(before) << before.error().to_string();
    EXPECT_TRUE(changes_no_bit(**before, lay_out_by_features, text, 17));
  }
}

// A product of the places that a window of one element reads.
TEST(FeaturesLast, WindowsOfOnePlaceThatMoveAreProducts) {
  const std::string text =
      R"(func.func @main(%x: tensor<2x20x7x6xf32>, %w: tensor<24x20x1x1xf32>) -> tensor<2x24x4x2xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 3]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x20x7x6xf32>, tensor<24x20x1x1xf32>) -> tensor<2x24x4x2xf32>
  return %r : tensor<2x24x4x2xf32>
})";
  const auto before = import_module(text, "t");
  ASSERT_TRUE(before) << before.error().to_string();
  const auto as_product = [](Module& module) {
    const auto changed = simplify(module);
    bool slices = false;
    for (const Instruction& op : *module.entry()) {
      EXPECT_NE(op.code(), OpCode::kConvolution);
      slices |= op.code() == OpCode::kSlice;
    }
    EXPECT_TRUE(slices);
    return changed;
  };
  EXPECT_TRUE(changes_no_bit(**before, as_product, text, 13));
}

// --- Constant factors of products

std::string product_of_constant(const std::string& x, const std::string& outputs,
                                const std::string& weights) {
  return fmt::format(R"(func.func @main(%in: tensor<{0}x12xf32>) -> tensor<{0}x{1}xf32> {{
  %x = stablehlo.round_nearest_even %in : tensor<{0}x12xf32>
  %w = stablehlo.constant {2} : tensor<{1}x12xf32>
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<{0}x12xf32>, tensor<{1}x12xf32>) -> tensor<{0}x{1}xf32>
  return %r : tensor<{0}x{1}xf32>
}})",
                     x, outputs, weights);
}

Result<bool> lay_out_wide_factors(Module& module) {
  PassOptions options;
  options.cost.wide_tiles = true;
  return lay_out_factors(module, options);
}

bool turns(const std::string& text) {
  const auto before = import_module(text, "t");
  EXPECT_TRUE(before) << before.error().to_string();
  return before && changes_no_bit(**before, lay_out_wide_factors, text, 17);
}

// So many rows of twelve different numbers.
std::string dense(int64_t rows) {
  std::string all = "dense<[";
  for (int64_t r = 0; r < rows; ++r) {
    all += r == 0 ? "[" : ", [";
    for (int64_t k = 0; k < 12; ++k) all += fmt::format("{}{}", k == 0 ? "" : ", ", r % 5 + k);
    all += "]";
  }
  return all + "]>";
}

TEST(FactorLayouts, ConstantsEndInColumns) {
  EXPECT_TRUE(turns(product_of_constant("16", "96", dense(96))));
  EXPECT_FALSE(turns(product_of_constant("1", "96", dense(96)))) << "one row";
  EXPECT_FALSE(turns(product_of_constant("16", "8", dense(8)))) << "few elements";
  EXPECT_FALSE(turns(product_of_constant("16", "96", "dense<2.0>"))) << "all the same";
  // Constant folding, which the driver runs next, leaves no transpose.
  auto module = import_module(product_of_constant("16", "96", dense(96)), "t");
  ASSERT_TRUE(module && lay_out_wide_factors(**module) && fold_constants(**module) &&
              eliminate_dead(**module));
  for (const Instruction& op : *(*module)->entry()) {
    EXPECT_NE(op.code(), OpCode::kTranspose);
    if (op.code() == OpCode::kDotGeneral) EXPECT_EQ(op.operand_type(1).dims(), Dims({12, 96}));
  }
}

TEST(FactorLayouts, StayWhereTilesAreNotWide) {
  auto module = import_module(product_of_constant("16", "96", dense(96)), "t");
  const auto changed = lay_out_factors(**module);
  EXPECT_TRUE(changed && !*changed);
}

Result<bool> lay_out_wide_panels(Module& module) {
  PassOptions options;
  options.cost.panel_bytes = 128;
  return lay_out_panels(module, options);
}

// A product of rows of 96 with a constant of so many columns, in its transpose if that is said.
std::string product_of_large_constant(int64_t rows, int64_t columns, bool transposed,
                                      const std::string& more = "",
                                      const std::string& type = "f32") {
  std::string weights = "dense<[";
  const Dims size = transposed ? Dims{columns, 96} : Dims{96, columns};
  for (int64_t r = 0; r < size[0]; ++r) {
    weights += r == 0 ? "[" : ", [";
    for (int64_t c = 0; c < size[1]; ++c)
      weights += fmt::format("{}{}.0", c == 0 ? "" : ", ", (r * 31 + c) % 17 - 8);
    weights += "]";
  }
  return fmt::format(
      R"(func.func @main(%in: tensor<2x{0}x96x{7}>) -> tensor<2x{0}x{1}x{7}> {{
  %w = stablehlo.constant {2}]> : tensor<{3}x{4}x{7}>
  %x = stablehlo.round_nearest_even %in : tensor<2x{0}x96x{7}>
  %r = stablehlo.dot_general %x, %w, contracting_dims = [2] x [{5}] : (tensor<2x{0}x96x{7}>, tensor<{3}x{4}x{7}>) -> tensor<2x{0}x{1}x{7}>
{6}  return %r : tensor<2x{0}x{1}x{7}>
}})",
      rows, columns, weights, size[0], size[1], transposed ? 1 : 0, more, type);
}

Dims panels_of(const std::string& text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  const auto changed = lay_out_wide_panels(**module);
  EXPECT_TRUE(changed && verify(**module).ok());
  Dims dims;
  int64_t constants = 0;
  change_ops(**module, [&](Instruction& op) {
    if (op.code() == OpCode::kDotGeneral) dims = op.operand_type(1).dims();
    constants += op.code() == OpCode::kConstant ? 1 : 0;
    return false;
  });
  EXPECT_EQ(constants, 1) << "the constant as it was";
  return dims;
}

TEST(FactorPanels, ConstantsBecomePanels) {
  for (const bool transposed : {false, true}) {
    const std::string text = product_of_large_constant(3, 128, transposed);
    EXPECT_EQ(panels_of(text), (Dims{4, 96, 32}));
    const auto module = import_module(text, "t");
    EXPECT_TRUE(changes_no_bit(**module, lay_out_wide_panels, text, 17));
  }
  EXPECT_EQ(panels_of(product_of_large_constant(3, 128, false, "", "f64")), (Dims{8, 96, 16}));
  // Tiles of two rows have twice as many columns.
  EXPECT_EQ(panels_of(product_of_large_constant(1, 128, false)), (Dims{2, 96, 64}));
}

TEST(FactorPanels, OfReshapedConstants) {
  std::string text = product_of_large_constant(3, 128, false);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  replace("%w =", "%f =");
  replace("dense<[[", "dense<[[[[");
  replace("]]> : tensor<96x128xf32>\n",
          "]]]]> : tensor<1x1x96x128xf32>\n  %w = stablehlo.reshape %f : "
          "(tensor<1x1x96x128xf32>) -> tensor<96x128xf32>\n");
  EXPECT_EQ(panels_of(text), (Dims{4, 96, 32}));
  const auto module = import_module(text, "t");
  EXPECT_TRUE(changes_no_bit(**module, lay_out_wide_panels, text, 17));
}

TEST(FactorPanels, OfEachMatrixOfABatch) {
  for (const bool transposed : {false, true}) {
    const Dims size = transposed ? Dims{2, 64, 96} : Dims{2, 96, 64};
    std::string rows;
    for (int64_t r = 0; r < size[0] * size[1]; ++r) {
      if (r % size[1] == 0) rows += r == 0 ? "[" : "], [";
      rows += r % size[1] == 0 ? "[" : ", [";
      for (int64_t c = 0; c < size[2]; ++c)
        rows += fmt::format("{}{}.0", c == 0 ? "" : ", ", (r * 31 + c) % 17 - 8);
      rows += "]";
    }
    const std::string text = fmt::format(
        R"(func.func @main(%in: tensor<2x5x96xf32>) -> tensor<2x5x64xf32> {{
  %w = stablehlo.constant dense<[{0}]]> : tensor<2x{1}x{2}xf32>
  %x = stablehlo.round_nearest_even %in : tensor<2x5x96xf32>
  %r = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [{3}] : (tensor<2x5x96xf32>, tensor<2x{1}x{2}xf32>) -> tensor<2x5x64xf32>
  return %r : tensor<2x5x64xf32>
}})",
        rows, size[1], size[2], transposed ? 2 : 1);
    EXPECT_EQ(panels_of(text), (Dims{2, 2, 96, 32}));
    const auto module = import_module(text, "t");
    EXPECT_TRUE(changes_no_bit(**module, lay_out_wide_panels, text, 17));
  }
}

TEST(FactorPanels, StayWhereTheyWouldBeTwiceOrPadded) {
  const Dims matrix = {96, 100};
  EXPECT_EQ(panels_of(product_of_large_constant(3, 100, false)), matrix) << "no whole panels";
  EXPECT_EQ(panels_of(product_of_large_constant(3, 32, false)), (Dims{96, 32})) << "small";
  EXPECT_EQ(panels_of(product_of_large_constant(3, 128, false, "", "bf16")), (Dims{96, 128}));
  const std::string other = "  %n = stablehlo.negate %w : tensor<96x128xf32>\n";
  EXPECT_EQ(panels_of(product_of_large_constant(3, 128, false, other)), (Dims{96, 128}));
  // Another product that wants the same panels does not keep them from it.
  const std::string same =
      "  %s = stablehlo.dot_general %in, %w, contracting_dims = [2] x [0] : (tensor<2x3x96xf32>, "
      "tensor<96x128xf32>) -> tensor<2x3x128xf32>\n";
  EXPECT_EQ(panels_of(product_of_large_constant(3, 128, false, same)), (Dims{4, 96, 32}));
  auto module = import_module(product_of_large_constant(3, 128, false), "t");
  const auto changed = lay_out_panels(**module);
  EXPECT_TRUE(changed && !*changed) << "a target without wide tiles";
}

// The gradient by an input has the filter with inputs and outputs in each other's place.
TEST(FeaturesLast, FiltersThatEndInInputsAreTransposed) {
  const std::string text =
      R"(func.func @main(%x: tensor<1x8x8x32xf32>, %w: tensor<3x3x32x32xf32>) -> tensor<1x8x8x32xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]], reverse = [1, 1]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x8x8x32xf32>
  return %r : tensor<1x8x8x32xf32>
})";
  EXPECT_EQ(transposes_left(text), 1);
}

bool splits(const std::string& from, const std::string& to, const std::string& order) {
  const std::string text = fmt::format(R"(func.func @main(%x: tensor<{0}xf32>) -> tensor<{1}xf32> {{
  %r = stablehlo.transpose %x, dims = [{2}] : (tensor<{0}xf32>) -> tensor<{1}xf32>
  return %r : tensor<{1}xf32>
}})",
                                       from, to, order);
  const auto before = import_module(text, "t");
  EXPECT_TRUE(before) << before.error().to_string();
  return before && changes_no_bit(**before, split_transposes, text, 5);
}

TEST(SplitTransposes, ChangeNoBit) {
  EXPECT_TRUE(splits("64x32x3x3", "3x3x32x64", "2, 3, 1, 0"));
  EXPECT_TRUE(splits("3x3x32x64", "64x32x3x3", "3, 2, 0, 1"));
  EXPECT_TRUE(splits("64x1x32x3x1x3", "3x3x1x32x1x64", "3, 5, 1, 2, 4, 0"));
  EXPECT_TRUE(splits("40x20x5x6", "6x20x5x40", "3, 1, 2, 0"));
  EXPECT_TRUE(splits("7x5x20x40", "40x5x20x7", "3, 1, 2, 0"));
}

TEST(SplitTransposes, OnlyWhereRowsAreShort) {
  EXPECT_FALSE(splits("128x256", "256x128", "1, 0"));
  EXPECT_FALSE(splits("64x32x20", "20x32x64", "2, 1, 0")) << "rows that fill vectors";
  EXPECT_FALSE(splits("8x256x14x14", "8x14x14x256", "0, 2, 3, 1"))
      << "dimensions that stay together";
  EXPECT_FALSE(splits("16x16x3x3", "3x3x16x16", "2, 3, 1, 0")) << "few elements";
  EXPECT_FALSE(splits("4096x3x3", "4096x3x3", "0, 2, 1")) << "short on both sides";
}

}  // namespace
}  // namespace tenon::hlo
