// Schedules for devices with many lanes, which the results of an op alone do not fill.
#include "hlo/lower/schedules/schedules_test_util.h"

namespace tenon::conformance {
namespace {

// Each division of lanes and workgroups, with a rest of leaves and of results, and without.
void expect_shared_columns(const std::string& text) {
  const std::vector<std::string> one = {"fusion_columns"};
  const std::vector<std::string> two = {"fusion_columns", "fusion_found"};
  for (const int64_t columns : {1, 4, 32}) {
    for (const int64_t rows : {2, 3, 8}) {
      for (const int64_t workgroups : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} columns, {} rows, {} workgroups", columns, rows, workgroups));
        expect_schedule(text,
                        {{"shared-columns", 1},
                         {"columns", columns},
                         {"column_rows", rows},
                         {"column_workgroups", workgroups}},
                        workgroups == 1 ? one : two, 6);
      }
    }
  }
}

TEST(SharedColumns, SumWithOpsBeforeAndBehindIt) {
  expect_shared_columns(R"(
func.func @main(%x: tensor<61x37xf32>, %b: tensor<37xf32>) -> (tensor<37xf32>, tensor<37xf32>) {
  %init = stablehlo.constant dense<5.0> : tensor<f32>
  %a = stablehlo.multiply %x, %x : tensor<61x37xf32>
  %s = stablehlo.reduce(%a init: %init) applies stablehlo.add across dimensions = [0] : (tensor<61x37xf32>, tensor<f32>) -> tensor<37xf32>
  %t = stablehlo.add %s, %b : tensor<37xf32>
  return %s, %t : tensor<37xf32>, tensor<37xf32>
})");
}

TEST(SharedColumns, ProductsWithFewRows) {
  for (const char* const type : {"f32", "bf16", "i32"}) {
    expect_shared_columns(fmt::format(R"(
func.func @main(%x: tensor<2x3x48x{0}>, %w: tensor<2x48x40x{0}>) -> tensor<2x3x40x{0}> {{
  %y = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x48x{0}>, tensor<2x48x40x{0}>) -> tensor<2x3x40x{0}>
  return %y : tensor<2x3x40x{0}>
}})",
                                      type));
  }
}

// The last element: swapping the sides, or another order, would give a different one; no identity
// is known, and two results are combined at once.
TEST(SharedColumns, OrderIsKept) {
  expect_shared_columns(R"(
func.func @main(%x: tensor<3x17x5xi32>, %z: tensor<3x17x5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {
  %init = stablehlo.constant dense<100> : tensor<i32>
  %s:2 = stablehlo.reduce(%x init: %init), (%z init: %init) across dimensions = [0, 1] : (tensor<3x17x5xi32>, tensor<3x17x5xi32>, tensor<i32>, tensor<i32>) -> (tensor<5xi32>, tensor<5xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%c: tensor<i32>, %d: tensor<i32>) {
    stablehlo.return %b, %d : tensor<i32>, tensor<i32>
  }
  return %s#0, %s#1 : tensor<5xi32>, tensor<5xi32>
})");
}

// On a device with many lanes, results too few to fill it share their leaves by columns where that
// reads adjacent elements, and a workgroup a result where its leaves are adjacent.
TEST(SharedColumns, ChosenByShape) {
  const auto chosen = [](const std::string& text) {
    hlo::LowerOptions options;
    options.limits.cost.busy_lanes = 1 << 15;
    const auto program = hlo::compile_to_program(*imported(text), options);
    EXPECT_TRUE(program) << program.error().to_string();
    return program->kernels.front().name;
  };
  const auto product = [](std::string_view x, std::string_view y, std::string_view dims,
                          std::string_view result) {
    return fmt::format(R"(func.func @main(%x: tensor<{0}>, %y: tensor<{1}>) -> tensor<{3}> {{
  %z = stablehlo.dot_general %x, %y, contracting_dims = {2} : (tensor<{0}>, tensor<{1}>) -> tensor<{3}>
  return %z : tensor<{3}>
}})",
                       x, y, dims, result);
  };
  const auto sum = [](std::string_view x, int64_t dimension, std::string_view result) {
    return fmt::format(R"(func.func @main(%x: tensor<{0}>) -> tensor<{2}> {{
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [{1}] : (tensor<{0}>, tensor<f32>) -> tensor<{2}>
  return %z : tensor<{2}>
}})",
                       x, dimension, result);
  };
  EXPECT_EQ(chosen(sum("2048x1024xf32", 0, "1024xf32")), "reduce_columns");
  EXPECT_EQ(chosen(sum("1024x2048xf32", 1, "1024xf32")), "reduce_rows");
  EXPECT_EQ(chosen(sum("64x100000xf32", 0, "100000xf32")), "reduce");
  EXPECT_EQ(chosen(product("1x256xf32", "256x1024xf32", "[1] x [0]", "1x1024xf32")),
            "dot_general_columns");
  EXPECT_EQ(chosen(product("1024x256xf32", "256xf32", "[1] x [0]", "1024xf32")),
            "dot_general_rows");
  EXPECT_EQ(chosen(product("256x1024xf32", "256xf32", "[0] x [0]", "1024xf32")),
            "dot_general_columns");
  // Tiles use each element of a product's factors several times, however deep it is.
  EXPECT_EQ(chosen(product("64x4096xf32", "128x4096xf32", "[1] x [1]", "64x128xf32")),
            "dot_general_tiles");
}

// Workgroups share the depth, with a rest and without.
TEST(TiledDot, PartsOfTheDepth) {
  for (const int64_t parts : {2, 3, 5}) {
    const Choices choices = {{"tiled-dot", 1}, {"tile_k", 4}, {"split_k", parts}};
    const std::vector<std::string> kernels = {"fusion_tiles", "fusion_sums"};
    expect_schedule(dot("3x20x39xf32", "3x39x11xf32", "3x20x11xf32",
                        "batching_dims = [0] x [0], contracting_dims = [2] x [1]"),
                    choices, kernels, 6);
    expect_schedule(dot("18x40xi8", "40x10xi8", "18x10xi32", "contracting_dims = [1] x [0]"),
                    choices, kernels, 6);
    expect_schedule(dot("18x40xbf16", "40x10xbf16", "18x10xbf16", "contracting_dims = [1] x [0]"),
                    choices, kernels, 6);
  }
}

// Many rows need no parts; the rest of the last part is scanned by lanes too.
TEST(PrefixScan, InPartsWhereRowsAreFew) {
  const auto launched = [](std::string_view dims, std::string_view window,
                           std::string_view padding) {
    const std::string text =
        fmt::format(R"(
func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.reduce_window"(%x, %i) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }}) {{window_dimensions = array<i64: {1}>, padding = dense<{2}> : tensor<{3}x2xi64>}} : (tensor<{0}xf32>, tensor<f32>) -> tensor<{0}xf32>
  return %y : tensor<{0}xf32>
}})",
                    dims, window, padding, std::ranges::count(window, ',') + 1);
    hlo::LowerOptions options;
    options.limits.cost.busy_lanes = 132 * 256;
    options.limits.cost.scans = true;
    const auto program = hlo::compile_to_program(*imported(text), options);
    EXPECT_TRUE(program) << program.error().to_string();
    return element_count(program->kernels.front().grid) *
           static_cast<int64_t>(program->kernels.size());
  };
  EXPECT_EQ(launched("4096x16384", "1, 16384", "[[0, 0], [16383, 0]]"), 4096);
  EXPECT_EQ(launched("1048576", "1048576", "[[1048575, 0]]"), 3 * 256);
  EXPECT_EQ(launched("4x1048576", "1, 1048576", "[[0, 0], [1048575, 0]]"), 3 * 4 * 64);
}

TEST(TiledDot, DepthIsSharedWhereTilesAreFew) {
  const auto kernels = [](const std::string& text) {
    hlo::LowerOptions options;
    options.limits.cost.busy_lanes = 1 << 15;
    const auto program = hlo::compile_to_program(*imported(text), options);
    EXPECT_TRUE(program) << program.error().to_string();
    return program->kernels.size();
  };
  const char* const dims = "contracting_dims = [1] x [0]";
  EXPECT_EQ(kernels(dot("196x2304xf32", "2304x256xf32", "196x256xf32", dims)), 2U);
  EXPECT_EQ(kernels(dot("196x64xf32", "64x256xf32", "196x256xf32", dims)), 1U);
  EXPECT_EQ(kernels(dot("2048x2304xf32", "2304x2048xf32", "2048x2048xf32", dims)), 1U);
}

// A recurrent step: one workgroup computes a small product sooner than a device with many lanes
// begins a launch.
TEST(ControlForm, ProductsInALoopOfOneWorkgroup) {
  const auto module = imported(R"(
func.func @main(%h: tensor<1x60xf32>, %w: tensor<60x60xf32>) -> tensor<1x60xf32> {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%k = %i, %s = %h) : tensor<i32>, tensor<1x60xf32>
   cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
   } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %d = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<1x60xf32>, tensor<60x60xf32>) -> tensor<1x60xf32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %k1, %d : tensor<i32>, tensor<1x60xf32>
  }
  return %r#1 : tensor<1x60xf32>
})");
  const auto kernels = [&](int64_t busy_lanes) {
    hlo::LowerOptions options;
    options.limits.cost.busy_lanes = busy_lanes;
    const auto program = hlo::compile_to_program(*module, options);
    EXPECT_TRUE(program) << program.error().to_string();
    std::vector<std::string> names;
    for (const kernel::Kernel& kernel : program->kernels) names.push_back(kernel.name);
    return names;
  };
  EXPECT_EQ(kernels(1 << 15), std::vector<std::string>{"while_workgroup"});
  EXPECT_GT(kernels(1).size(), 1U);
}

}  // namespace
}  // namespace tenon::conformance
