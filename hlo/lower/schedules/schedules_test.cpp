// Tests each schedule with programs for it, in whole numbers, where no order changes a bit: the
// kernels it makes, and their results in every order of iterations and with random choices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/lower/schedules/schedules_test_util.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

const char* const kRows = R"(
func.func @main(%x: tensor<6x70xf32>, %b: tensor<70xf32>) -> (tensor<6x70xf32>, tensor<6xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<6x70xf32>, tensor<f32>) -> tensor<6xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<6xf32>) -> tensor<6x70xf32>
  %d = stablehlo.subtract %x, %mb : tensor<6x70xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<70xf32>) -> tensor<6x70xf32>
  %e = stablehlo.add %d, %bb : tensor<6x70xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x70xf32>, tensor<f32>) -> tensor<6xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<6xf32>) -> tensor<6x70xf32>
  %y = stablehlo.multiply %e, %sb : tensor<6x70xf32>
  return %y, %s : tensor<6x70xf32>, tensor<6xf32>
})";

TEST(RowChain, AWorkgroupARow) { expect_schedule(kRows, {}, {"fusion_rows"}); }
TEST(RowChain, ALaneARow) { expect_schedule(kRows, {{"row-lane", 1}}, {"fusion_rows"}); }
TEST(RowChain, WithoutScratch) { expect_schedule(kRows, {{"row_scratch", 0}}, {"fusion_rows"}); }
TEST(RowChain, Declined) {
  // The result with one number per row first, then its readers.
  expect_schedule(kRows, {{"row-lane", 0}, {"row-workgroup", 0}}, {"fusion", "fusion_1"});
}

TEST(RowChain, SeveralOperandsAndRowsOfTwoDimensions) {
  expect_schedule(R"(
func.func @main(%x: tensor<3x5x8xf32>) -> (tensor<3x5x8xi32>, tensor<3xi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %i = stablehlo.iota dim = 2 : tensor<3x5x8xi32>
  %r:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [1, 2] : (tensor<3x5x8xf32>, tensor<3x5x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
   reducer(%a: tensor<f32>, %c: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
    %g = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %g, %a, %c : tensor<i1>, tensor<f32>
    %w = stablehlo.select %g, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  %b = stablehlo.broadcast_in_dim %r#1, dims = [0] : (tensor<3xi32>) -> tensor<3x5x8xi32>
  %y = stablehlo.subtract %i, %b : tensor<3x5x8xi32>
  return %y, %r#1 : tensor<3x5x8xi32>, tensor<3xi32>
})",
                  {{"row-workgroup", 1}}, {"fusion_rows"});
}

TEST(RowChain, ComplexNumbers) {
  expect_schedule(R"(
func.func @main(%x: tensor<4x66xcomplex<f32>>) -> tensor<4x66xcomplex<f32>> {
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %n = stablehlo.multiply %x, %x : tensor<4x66xcomplex<f32>>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x66xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xcomplex<f32>>) -> tensor<4x66xcomplex<f32>>
  %y = stablehlo.subtract %b, %n : tensor<4x66xcomplex<f32>>
  return %y : tensor<4x66xcomplex<f32>>
})",
                  {}, {"fusion_rows"});
}

// A batch norm's sums where images lie by planes: one workgroup for each, also with ops before
// them.
TEST(SharedReduction, OfWhatIsComputedAlongMemory) {
  expect_schedule(R"(
func.func @main(%x: tensor<3x5x40x9xf32>, %y: tensor<3x5x40x9xf32>) -> tensor<5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.multiply %x, %y : tensor<3x5x40x9xf32>
  %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<3x5x40x9xf32>, tensor<f32>) -> tensor<5xf32>
  return %s : tensor<5xf32>
})",
                  {}, {"fusion_rows"});
}

// Extremes of narrow floats are found in f32, without a conversion for each element.
TEST(SharedReduction, ExtremesOfNarrowFloats) {
  for (const std::string type : {"bf16", "f16"}) {
    for (const std::string op : {"maximum", "minimum"}) {
      expect_schedule(fmt::format(R"(
func.func @main(%x: tensor<3x5x40x9x{0}>) -> tensor<5x{0}> {{
  %init = stablehlo.constant dense<1.0> : tensor<{0}>
  %s = stablehlo.reduce(%x init: %init) applies stablehlo.{1} across dimensions = [0, 2, 3] : (tensor<3x5x40x9x{0}>, tensor<{0}>) -> tensor<5x{0}>
  return %s : tensor<5x{0}>
}})",
                                  type, op),
                      {}, {"fusion_rows"});
    }
  }
}

TEST(TwoStages, SumOfWhatIsComputed) {
  const char* const text = R"(
func.func @main(%x: tensor<3x1001xf32>) -> tensor<3xf32> {
  %init = stablehlo.constant dense<5.0> : tensor<f32>
  %a = stablehlo.multiply %x, %x : tensor<3x1001xf32>
  %s = stablehlo.reduce(%a init: %init) applies stablehlo.add across dimensions = [1] : (tensor<3x1001xf32>, tensor<f32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
})";
  const Choices two = {{"two-stage", 1}};
  expect_schedule(text, two, {"fusion_parts", "fusion_total"});
  for (const int64_t parts : {2, 7, 13, 500, 5000}) {
    Choices choices = two;
    choices.emplace_back("parts", parts);
    expect_schedule(text, choices, {"fusion_parts", "fusion_total"}, kRunsOfChoices);
  }
}

// argmax, of which the place alone is a result.
TEST(TwoStages, PlacesOfExtremes) {
  const char* const text = R"(
func.func @main(%x: tensor<3x1001xf32>) -> tensor<3xi32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.negate %x : tensor<3x1001xf32>
  %i = stablehlo.iota dim = 1 : tensor<3x1001xi32>
  %r:2 = stablehlo.reduce(%y init: %low), (%i init: %none) across dimensions = [1] : (tensor<3x1001xf32>, tensor<3x1001xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
   reducer(%a: tensor<f32>, %c: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
    %g = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %t = stablehlo.or %g, %n : tensor<i1>
    %e = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = stablehlo.and %e, %l : tensor<i1>
    %o = stablehlo.or %t, %b : tensor<i1>
    %v = stablehlo.select %t, %a, %c : tensor<i1>, tensor<f32>
    %w = stablehlo.select %o, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  return %r#1 : tensor<3xi32>
})";
  for (const int64_t parts : {2, 13}) {
    expect_schedule(text, {{"two-stage", 1}, {"parts", parts}}, {"fusion_parts", "fusion_total"},
                    kRunsOfChoices);
  }
}

// Returns the last element: swapping the sides, or another order, would give a different one.
TEST(TwoStages, OrderIsKept) {
  expect_schedule(R"(
func.func @main(%x: tensor<17x61xi32>) -> tensor<i32> {
  %init = stablehlo.constant dense<100> : tensor<i32>
  %s = stablehlo.reduce(%x init: %init) across dimensions = [0, 1] : (tensor<17x61xi32>, tensor<i32>) -> tensor<i32>
   reducer(%a: tensor<i32>, %b: tensor<i32>) {
    stablehlo.return %b : tensor<i32>
  }
  return %s : tensor<i32>
})",
                  {{"two-stage", 1}, {"parts", 6}}, {"fusion_parts", "fusion_total"});
}

// A reduce_window of `type` of which each row, along `dimension`, is scanned.
std::string prefixes(std::string_view dims, std::string_view type, std::string_view window,
                     std::string_view padding, std::string_view init, std::string_view body) {
  return fmt::format(R"(
func.func @main(%x: tensor<{0}x{1}>) -> tensor<{0}x{1}> {{
  %i = stablehlo.constant dense<{4}> : tensor<{1}>
  %y = "stablehlo.reduce_window"(%x, %i) ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
    {5}
    stablehlo.return %c : tensor<{1}>
  }}) {{window_dimensions = array<i64: {2}>, padding = dense<{3}> : tensor<{6}x2xi64>}} : (tensor<{0}x{1}>, tensor<{1}>) -> tensor<{0}x{1}>
  return %y : tensor<{0}x{1}>
}})",
                     dims, type, window, padding, init, body, std::ranges::count(window, ',') + 1);
}

void expect_prefix_scans(const std::string& text, const std::vector<int64_t>& counts = {7}) {
  const std::vector<std::string> in_parts = {"fusion_parts", "fusion_offsets", "fusion_scan"};
  for (const int64_t lanes : {0, 1}) {
    // The random parameters are the same each time.
    expect_schedule(text, {{"scan_lanes", lanes}, {"scan_parts", 1}}, {"fusion_scan"},
                    lanes == 0 ? runs_of_schedules() : kRunsOfChoices);
    for (const int64_t parts : counts) {
      expect_schedule(text, {{"scan_lanes", lanes}, {"scan_parts", parts}}, in_parts,
                      kRunsOfChoices);
    }
  }
}

TEST(PrefixScan, OfRowsAndColumnsInBothDirections) {
  const char* const add = "%c = stablehlo.add %a, %b : tensor<f32>";
  expect_prefix_scans(prefixes("301", "f32", "301", "[[300, 0]]", "0.0", add), {2, 7, 500});
  expect_prefix_scans(prefixes("301", "f32", "301", "[[0, 300]]", "0.0", add));
  // The lanes of the last workgroup scan a rest of 34 as well.
  expect_prefix_scans(prefixes("1959", "f32", "1959", "[[1958, 0]]", "0.0", add), {35});
  expect_prefix_scans(prefixes("5x129", "f32", "1, 129", "[[0, 0], [128, 0]]", "0.0", add));
  expect_prefix_scans(prefixes("129x5", "f32", "129, 1", "[[0, 128], [0, 0]]", "0.0", add));
  expect_prefix_scans(
      prefixes("3x40x2", "f32", "1, 40, 1", "[[0, 0], [39, 0], [0, 0]]", "0.0", add));
}

TEST(PrefixScan, OfOtherTypesAndOps) {
  const std::string window = "200";
  const std::string forward = "[[199, 0]]";
  expect_prefix_scans(
      prefixes("200", "bf16", window, forward, "0.0", "%c = stablehlo.add %a, %b : tensor<bf16>"));
  expect_prefix_scans(prefixes("200", "complex<f32>", window, forward, "(0.0, 0.0)",
                               "%c = stablehlo.add %a, %b : tensor<complex<f32>>"));
  expect_prefix_scans(
      prefixes("200", "i32", window, forward, "1", "%c = stablehlo.multiply %a, %b : tensor<i32>"));
  // A maximum ignores that padding repeats its init value.
  expect_prefix_scans(
      prefixes("200", "i32", window, forward, "1", "%c = stablehlo.maximum %a, %b : tensor<i32>"));
}

// The last element but for zeros: swapping the sides would give a different one.
TEST(PrefixScan, KeepsTheOrderOfOtherBodies) {
  const char* const last = R"(
    %z = stablehlo.constant dense<0> : tensor<i32>
    %p = stablehlo.compare EQ, %b, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c = stablehlo.select %p, %a, %b : tensor<i1>, tensor<i32>)";
  expect_prefix_scans(prefixes("200", "i32", "200", "[[199, 0]]", "0", last));
  expect_prefix_scans(prefixes("200", "i32", "200", "[[0, 199]]", "0", last));
}

// The greatest element so far and where it is.
TEST(PrefixScan, OfSeveralArrays) {
  for (const char* const padding : {"[[199, 0]]", "[[0, 199]]"}) {
    expect_prefix_scans(fmt::format(R"(
func.func @main(%x: tensor<200xf32>, %i: tensor<200xi32>) -> (tensor<200xf32>, tensor<200xi32>) {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %r:2 = "stablehlo.reduce_window"(%x, %i, %low, %none) ({{
  ^bb0(%a: tensor<f32>, %p: tensor<i32>, %c: tensor<f32>, %q: tensor<i32>):
    %g = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %g, %a, %c : tensor<i1>, tensor<f32>
    %w = stablehlo.select %g, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }}) {{window_dimensions = array<i64: 200>, padding = dense<{}> : tensor<1x2xi64>}} : (tensor<200xf32>, tensor<200xi32>, tensor<f32>, tensor<i32>) -> (tensor<200xf32>, tensor<200xi32>)
  return %r#0, %r#1 : tensor<200xf32>, tensor<200xi32>
}})",
                                    padding));
  }
}

TEST(PrefixScan, LongAndShortRows) {
  const char* const add = "%c = stablehlo.add %a, %b : tensor<f32>";
  const auto kernels = [](const std::string& text) {
    return names_of_kernels(*imported(text), {});
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(kernels(prefixes("1000000", "f32", "1000000", "[[999999, 0]]", "0.0", add)),
            (Names{"reduce_window_parts", "reduce_window_offsets", "reduce_window_scan"}));
  EXPECT_EQ(kernels(prefixes("500x500", "f32", "1, 500", "[[0, 0], [499, 0]]", "0.0", add)),
            (Names{"reduce_window_scan"}));
  EXPECT_EQ(kernels(prefixes("1000x8", "f32", "1, 8", "[[0, 0], [7, 0]]", "0.0", add)),
            (Names{"reduce_window_scan"}));
}

TEST(PrefixScan, LanesScanContiguousRowsWhereTheyCan) {
  const char* const add = "%c = stablehlo.add %a, %b : tensor<f32>";
  // The number of kernels, and that of scans over lanes in them.
  const auto counts = [](const std::string& text) {
    hlo::LowerOptions options;
    options.limits.cost.scans = true;
    const auto program = hlo::compile_to_program(*imported(text), options);
    EXPECT_TRUE(program) << program.error().to_string();
    std::ptrdiff_t scans = 0;
    for (const kernel::Kernel& kernel : program->kernels) {
      scans += std::ranges::count_if(kernel.nodes, [](const kernel::Node& n) {
        return n.op == kernel::OpCode::kScan && n.over_lanes;
      });
    }
    return std::pair(program->kernels.size(), scans);
  };
  const std::string one = prefixes("1000000", "f32", "1000000", "[[999999, 0]]", "0.0", add);
  EXPECT_EQ(counts(one), std::pair(size_t{3}, std::ptrdiff_t{1}));
  const std::string shorter = prefixes("100000", "f32", "100000", "[[99999, 0]]", "0.0", add);
  EXPECT_EQ(counts(shorter), std::pair(size_t{1}, std::ptrdiff_t{1}));
  const std::string rows = prefixes("500x500", "f32", "1, 500", "[[0, 0], [499, 0]]", "0.0", add);
  EXPECT_EQ(counts(rows), std::pair(size_t{1}, std::ptrdiff_t{1}));
  const std::string columns =
      prefixes("500x500", "f32", "500, 1", "[[499, 0], [0, 0]]", "0.0", add);
  EXPECT_EQ(counts(columns), std::pair(size_t{1}, std::ptrdiff_t{0}));
}

TEST(PrefixScan, NotWherePaddingOrWindowsShow) {
  const char* const add = "%c = stablehlo.add %a, %b : tensor<f32>";
  for (const auto& [window, padding, init] : {std::tuple{"200", "[[199, 0]]", "1.0"},
                                              {"199", "[[198, 0]]", "0.0"},
                                              {"200", "[[100, 99]]", "0.0"}}) {
    expect_schedule(prefixes("200", "f32", window, padding, init, add), {}, {"fusion"});
  }
}

TEST(TwoStages, LargeReductionsTakeThem) {
  EXPECT_EQ(names_of_kernels(*imported(R"(
func.func @main(%x: tensor<1000000xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<1000000xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
})"),
                             {}),
            (std::vector<std::string>{"reduce_parts", "reduce_total"}));
}

TEST(TiledTranspose, WithWhatFollows) {
  expect_schedule(R"(
func.func @main(%x: tensor<37x50xf32>, %y: tensor<50x37xf32>) -> (tensor<50x37xf32>, tensor<50x37xf32>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<37x50xf32>) -> tensor<50x37xf32>
  %a = stablehlo.add %t, %y : tensor<50x37xf32>
  %m = stablehlo.multiply %a, %t : tensor<50x37xf32>
  return %a, %m : tensor<50x37xf32>, tensor<50x37xf32>
})",
                  {}, {"fusion_tiles"});
}

TEST(TiledTranspose, AnyPermutationAndType) {
  for (const auto& [permutation, to] :
       std::vector<std::pair<std::string, std::string>>{{"2, 1, 0", "33x20x18"},
                                                        {"0, 2, 1", "18x33x20"},
                                                        {"1, 2, 0", "20x33x18"},
                                                        {"2, 0, 1", "33x18x20"}}) {
    for (const char* type : {"f32", "i8", "complex<f64>", "i1", "f8E4M3FN"}) {
      expect_schedule(
          fmt::format("func.func @main(%x: tensor<18x20x33x{0}>) -> tensor<{2}x{0}> {{\n"
                      "%t = stablehlo.transpose %x, dims = [{1}] : (tensor<18x20x33x{0}>) -> "
                      "tensor<{2}x{0}>\nreturn %t : tensor<{2}x{0}>\n}}",
                      type, permutation, to),
          {{"tiled-transpose", 1}, {"tile_along", 16}}, {"fusion_tiles"});
    }
  }
}

// Also read at another index, which the tile does not contain.
TEST(TiledTranspose, ReadElsewhereToo) {
  expect_schedule(R"(
func.func @main(%x: tensor<40x20xf32>) -> tensor<20x40xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<40x20xf32>) -> tensor<20x40xf32>
  %r = stablehlo.reverse %t, dims = [0, 1] : tensor<20x40xf32>
  %a = stablehlo.subtract %t, %r : tensor<20x40xf32>
  return %a : tensor<20x40xf32>
})",
                  {}, {"fusion_tiles"});
}

// Parts of `list`, numbers of elements along dimension `axis` of `dims`, each computed from %x.
std::string concatenation(std::string_view type, std::vector<int64_t> dims, size_t axis,
                          const std::vector<int64_t>& list, std::string_view permutation = "") {
  const auto tensor = [&](const std::vector<int64_t>& sizes) {
    return fmt::format("tensor<{}x{}>", fmt::join(sizes, "x"), type);
  };
  std::string body, parts, types;
  int64_t sum = 0;
  for (size_t k = 0; k < list.size(); ++k) {
    dims[axis] = list[k];
    body += fmt::format("%b{0} = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<{1}>) -> {2}\n",
                        k, type, tensor(dims));
    body += fmt::format("%i{0} = stablehlo.iota dim = {1} : {2}\n", k, axis, tensor(dims));
    body += fmt::format("%p{0} = stablehlo.add %b{0}, %i{0} : {1}\n", k, tensor(dims));
    parts += fmt::format("{}%p{}", k == 0 ? "" : ", ", k);
    types += fmt::format("{}{}", k == 0 ? "" : ", ", tensor(dims));
    sum += list[k];
  }
  dims[axis] = sum;
  std::string to = tensor(dims);
  body +=
      fmt::format("%c = stablehlo.concatenate {}, dim = {} : ({}) -> {}\n", parts, axis, types, to);
  if (!permutation.empty()) {
    const std::string from = to;
    to = tensor({dims[1], dims[0]});
    body += fmt::format("%t = stablehlo.transpose %c, dims = [{}] : ({}) -> {}\n", permutation,
                        from, to);
  }
  return fmt::format("func.func @main(%x: tensor<{}>) -> {} {{\n{}return {} : {}\n}}", type, to,
                     body, permutation.empty() ? "%c" : "%t", to);
}

TEST(Concatenation, ALoopForEachPart) {
  const Choices choices = {{"concatenation", 1}};
  for (const std::string_view type : {"f32", "ui8", "complex<f32>"}) {
    const std::vector<std::string> names = {"fusion_concatenated"};
    expect_schedule(concatenation(type, {5, 0, 3}, 1, {7, 0, 40}), choices, names);
    expect_schedule(concatenation(type, {0}, 0, {100, 4000, 1}), choices, names);
    expect_schedule(concatenation(type, {40, 0}, 1, {33, 9}), choices, names);
    expect_schedule(concatenation(type, {0, 90}, 0, {50, 3}), choices, names);
  }
}

TEST(Concatenation, LanesStoreShortRows) {
  const Choices choices = {{"concatenation", 1}};
  const std::vector<std::string> names = {"fusion_concatenated"};
  expect_schedule(concatenation("f32", {300, 0}, 1, {1, 2}), choices, names);
  expect_schedule(concatenation("f32", {300, 0, 2}, 1, {1, 3}), choices, names);
  expect_schedule(concatenation("f32", {0, 300}, 0, {1, 1, 1}, "1, 0"), choices, names);
}

TEST(TiledDot, WithWhatIsAround) {
  expect_schedule(R"(
func.func @main(%x: tensor<33x17xbf16>, %y: tensor<17x29xf32>, %b: tensor<29xf32>) -> tensor<33x29xf32> {
  %c = stablehlo.convert %x : (tensor<33x17xbf16>) -> tensor<33x17xf32>
  %n = stablehlo.negate %c : tensor<33x17xf32>
  %d = stablehlo.dot_general %n, %y, contracting_dims = [1] x [0] : (tensor<33x17xf32>, tensor<17x29xf32>) -> tensor<33x29xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<29xf32>) -> tensor<33x29xf32>
  %a = stablehlo.add %d, %bb : tensor<33x29xf32>
  %z = stablehlo.constant dense<0.0> : tensor<33x29xf32>
  %r = stablehlo.maximum %a, %z : tensor<33x29xf32>
  return %r : tensor<33x29xf32>
})",
                  {}, {"fusion_tiles"});
}

TEST(TiledDot, DimensionsInAnyOrder) {
  const Choices tiles = {{"tiled-dot", 1}};
  // Batches, several free and contracted dimensions, transposed factors.
  for (const std::string& text :
       {dot("3x20x9xf32", "3x9x11xf32", "3x20x11xf32",
            "batching_dims = [0] x [0], contracting_dims = [2] x [1]"),
        dot("9x3x20xf32", "11x9x3xf32", "3x20x11xf32",
            "batching_dims = [1] x [2], contracting_dims = [0] x [1]"),
        dot("4x5x6x7xf32", "7x5x3x2xf32", "4x6x3x2xf32", "contracting_dims = [1, 3] x [1, 0]"),
        dot("40xf32", "40xf32", "f32", "contracting_dims = [0] x [0]"),
        dot("1x30xf32", "30x64xf32", "1x64xf32", "contracting_dims = [1] x [0]"),
        dot("6xf32", "5xf32", "6x5xf32", "contracting_dims = [] x []")}) {
    expect_schedule(text, tiles, {"fusion_tiles"});
  }
}

TEST(TiledDot, Types) {
  const Choices tiles = {{"tiled-dot", 1}};
  for (const auto& [lhs, rhs, result] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"i8", "i8", "i32"},
                                                                      {"ui8", "ui8", "ui8"},
                                                                      {"bf16", "bf16", "bf16"},
                                                                      {"f16", "f16", "f32"},
                                                                      {"f64", "f64", "f64"},
                                                                      {"f8E4M3FN", "f8E5M2", "f32"},
                                                                      {"i64", "i64", "i64"},
                                                                      {"i4", "i4", "i32"}}) {
    expect_schedule(
        dot("18x12x" + lhs, "12x10x" + rhs, "18x10x" + result, "contracting_dims = [1] x [0]"),
        tiles, {"fusion_tiles"});
  }
}

// A convolution of two spatial dimensions, by what it does beyond the usual.
struct ConvolutionText {
  std::string input = "2x9x10x8xf32";
  std::string kernel = "3x3x8x12xf32";
  std::string result = "2x7x8x12xf32";
  std::string window;
  std::string dims = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
  int feature_groups = 1;
  int batch_groups = 1;

  std::string text() const {
    return fmt::format(
        "func.func @main(%x: tensor<{0}>, %w: tensor<{1}>) -> tensor<{2}> {{\n"
        "  %y = stablehlo.convolution(%x, %w) dim_numbers = {3}, window = {{{4}}} "
        "{{batch_group_count = {5} : i64, feature_group_count = {6} : i64}} : "
        "(tensor<{0}>, tensor<{1}>) -> tensor<{2}>\n  return %y : tensor<{2}>\n}}",
        input, kernel, result, dims, window, batch_groups, feature_groups);
  }
};

void expect_tiles(const ConvolutionText& convolution) {
  const std::string text = convolution.text();
  SCOPED_TRACE(text);
  const auto module = imported(text);
  expect_schedule(text, {{"tiled-convolution", 1}, {"tile_k", 2}, {"split_k", 2}},
                  {"fusion_tiles", "fusion_sums"}, picked_runs(*module, 2, 0));
  expect_schedule(text, {{"tiled-convolution", 1}}, {"fusion_tiles"}, picked_runs(*module, 2, 2));
}

TEST(TiledConvolution, WindowsPaddingAndStrides) {
  expect_tiles({});
  expect_tiles({.result = "2x9x10x12xf32", .window = "pad = [[1, 1], [1, 1]]"});
  expect_tiles({.result = "2x5x4x12xf32", .window = "stride = [2, 3], pad = [[1, 2], [0, 2]]"});
  expect_tiles({.result = "2x6x9x12xf32", .window = "pad = [[-1, 0], [2, -1]]"});
  expect_tiles({.result = "2x5x8x12xf32", .window = "rhs_dilate = [2, 1]"});
  expect_tiles({.result = "2x7x8x12xf32", .window = "reverse = [true, false]"});
}

TEST(TiledConvolution, InputsWithGapsGoByPhases) {
  // Sizes of which the number of phases is, and is not, a divisor; strides beside them.
  expect_tiles(
      {.result = "2x16x17x12xf32", .window = "pad = [[1, 0], [0, 0]], lhs_dilate = [2, 2]"});
  expect_tiles(
      {.result = "2x23x10x12xf32", .window = "pad = [[-1, 1], [2, 0]], lhs_dilate = [3, 1]"});
  expect_tiles({.result = "2x8x12x12xf32",
                .window = "stride = [2, 3], pad = [[1, 0], [2, 7]], lhs_dilate = [2, 3]"});
  expect_tiles({.result = "2x16x17x12xf32",
                .window = "pad = [[1, 0], [0, 0]], lhs_dilate = [2, 2], reverse = [true, true]"});
  // Each place that a window of one reaches is a gap: known when the kernel is made.
  expect_tiles({.input = "3x17x8xf32",
                .kernel = "16x17x1xf32",
                .result = "3x16x7xf32",
                .window = "stride = [2], pad = [[-1, 0]], lhs_dilate = [2]",
                .dims = "[b, f, 0]x[o, i, 0]->[b, f, 0]"});
  // A dilated kernel too: no phases.
  expect_tiles({.result = "2x13x17x12xf32", .window = "lhs_dilate = [2, 2], rhs_dilate = [2, 1]"});
}

// By elements, each lane would multiply the zeros in gaps: tiles pay with few features too.
TEST(TiledConvolution, ChosenWhereThereAreGaps) {
  const auto chosen = [](const ConvolutionText& convolution) {
    const auto program = hlo::compile_to_program(*imported(convolution.text()));
    EXPECT_TRUE(program) << program.error().to_string();
    return program->kernels.back().name;
  };
  const ConvolutionText gaps{.kernel = "3x3x8x3xf32",
                             .result = "2x16x17x3xf32",
                             .window = "pad = [[1, 0], [0, 0]], lhs_dilate = [2, 2]"};
  expect_tiles(gaps);
  EXPECT_EQ(chosen(gaps), "convolution_tiles");
  EXPECT_EQ(chosen({.kernel = "3x3x8x3xf32", .result = "2x7x8x3xf32"}), "convolution");
  // A window of one place spares nothing.
  EXPECT_EQ(chosen({.kernel = "1x1x8x3xf32",
                    .result = "2x17x19x3xf32",
                    .window = "pad = [[0, 0], [0, 0]], lhs_dilate = [2, 2]"}),
            "convolution");
}

TEST(TiledConvolution, GroupsLayoutsAndFewFeatures) {
  expect_tiles({.kernel = "3x3x4x12xf32", .feature_groups = 2});
  expect_tiles({.kernel = "3x3x8x12xf32", .result = "1x7x8x12xf32", .batch_groups = 2});
  expect_tiles({.kernel = "3x3x4x12xf32",
                .result = "2x16x17x12xf32",
                .window = "pad = [[1, 0], [0, 0]], lhs_dilate = [2, 2]",
                .feature_groups = 2});
  expect_tiles({.input = "2x8x9x10xf32",
                .kernel = "12x8x3x3xf32",
                .result = "2x12x7x8xf32",
                .dims = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"});
  expect_tiles({.input = "2x9x10x3xf32", .kernel = "3x3x3x12xf32"});
  expect_tiles({.input = "2x9x10x3xf32",
                .kernel = "3x3x3x12xf32",
                .result = "2x16x17x12xf32",
                .window = "pad = [[1, 0], [0, 0]], lhs_dilate = [2, 2]"});
}

TEST(TiledConvolution, TypesAndWhatIsAround) {
  for (const char* type : {"f64", "bf16", "i32", "i8"}) {
    ConvolutionText convolution;
    for (std::string* each : {&convolution.input, &convolution.kernel, &convolution.result}) {
      each->replace(each->rfind('x') + 1, 3, type);
    }
    if (std::string_view(type) == "i8") {
      convolution.result.replace(convolution.result.rfind('x') + 1, 2, "i32");
    }
    expect_tiles(convolution);
  }
  expect_schedule(R"(
func.func @main(%x: tensor<2x9x10x8xf32>, %w: tensor<3x3x8x12xf32>, %b: tensor<12xf32>) -> tensor<2x9x10x12xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<2x9x10x8xf32>
  %x2 = stablehlo.multiply %x, %two : tensor<2x9x10x8xf32>
  %y = stablehlo.convolution(%x2, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x10x8xf32>, tensor<3x3x8x12xf32>) -> tensor<2x9x10x12xf32>
  %wide = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<12xf32>) -> tensor<2x9x10x12xf32>
  %sum = stablehlo.add %y, %wide : tensor<2x9x10x12xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<2x9x10x12xf32>
  %relu = stablehlo.maximum %sum, %zero : tensor<2x9x10x12xf32>
  return %relu : tensor<2x9x10x12xf32>
}
)",
                  {{"tiled-convolution", 1}}, {"fusion_tiles"});
}

TEST(Elements, ResultsOfSeveralShapes) {
  // Elements of another result, which one result reads at a different index, are read from memory.
  expect_schedule(R"(
func.func @main(%x: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x3xf32>, tensor<f32>) -> tensor<3xf32>
  %r = stablehlo.reverse %s, dims = [0] : tensor<3xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<3xf32>) -> tensor<5x3xf32>
  %y = stablehlo.multiply %x, %b : tensor<5x3xf32>
  %e = stablehlo.slice %s [1:1] : (tensor<3xf32>) -> tensor<0xf32>
  return %y, %r, %s, %e : tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xf32>
})",
                  {}, {"fusion", "fusion_1", "fusion_2"});
}

// --- One value at two places

// Result 1 only moves result 0: in any order and with any schedule it has the same bits, those at
// `from(i)`.
void expect_moved(const std::string& text, const std::function<int64_t(int64_t)>& from) {
  const auto module = fused(text);
  const std::vector<Literal> arguments = arguments_of(*module, false);
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    hlo::InterpretedRunOptions options;
    if (seed >= 3) options.lower.tuning = hlo::lower::TuningParameters::random(seed);
    options.interpreter.order = static_cast<kernel::Order>(seed % 3);
    options.interpreter.seed = static_cast<uint64_t>(seed);
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto results =
        hlo::run_interpreted(*module, arguments, hlo::Checks(&failures, &checks), options);
    ASSERT_TRUE(results) << results.error().to_string();
    for (int64_t i = 0; i < (*results)[1].element_count(); ++i) {
      ASSERT_EQ((*results)[1].get_double(i), (*results)[0].get_double(from(i))) << i;
    }
  }
}

TEST(OneValue, OfADotThatIsReadElsewhereToo) {
  expect_moved(R"(
func.func @main(%x: tensor<16x40xf32>, %y: tensor<40x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<16x40xf32>, tensor<40x16xf32>) -> tensor<16x16xf32>
  %r = stablehlo.reverse %d, dims = [0] : tensor<16x16xf32>
  return %d, %r : tensor<16x16xf32>, tensor<16x16xf32>
})",
               [](int64_t i) { return (15 - i / 16) * 16 + i % 16; });
}

TEST(OneValue, OfAReductionThatIsReadElsewhereToo) {
  expect_moved(R"(
func.func @main(%x: tensor<6x70xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x70xf32>, tensor<f32>) -> tensor<6xf32>
  %r = stablehlo.reverse %s, dims = [0] : tensor<6xf32>
  return %s, %r : tensor<6xf32>, tensor<6xf32>
})",
               [](int64_t i) { return 5 - i; });
}

// The index of a dimension of one element is 0 in a broadcast and the loop variable in a loop; the
// two are equal.
TEST(OneValue, OfRowsOfOneDimensionOfOne) {
  for (const char* rows : {"1", "1x1", "1x3", "3x1"}) {
    const std::string dims = rows;
    const bool two = dims.size() > 1;
    expect_moved(fmt::format(R"(
func.func @main(%x: tensor<{0}x90xf32>) -> (tensor<{0}xf32>, tensor<{0}x90xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{1}] : (tensor<{0}x90xf32>, tensor<f32>) -> tensor<{0}xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [{2}] : (tensor<{0}xf32>) -> tensor<{0}x90xf32>
  return %s, %b : tensor<{0}xf32>, tensor<{0}x90xf32>
}})",
                             dims, two ? 2 : 1, two ? "0, 1" : "0"),
                 [](int64_t i) { return i / 90; });
  }
}

TEST(RowChain, RowsOfOneAreNotReducedAgain) {
  const auto module = fused(R"(
func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x1000xf32>, tensor<f32>) -> tensor<1xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<1xf32>) -> tensor<1x1000xf32>
  %y = stablehlo.divide %x, %b : tensor<1x1000xf32>
  return %y : tensor<1x1000xf32>
})");
  const auto program = hlo::compile_to_program(*module);
  ASSERT_TRUE(program) << program.error().to_string();
  ASSERT_EQ(program->kernels.size(), 1u);
  EXPECT_EQ(
      std::ranges::count_if(program->kernels[0].nodes,
                            [](const kernel::Node& n) { return n.op == kernel::OpCode::kReduce; }),
      1);
}

// --- Fusions that fit no schedule

TEST(Fusions, ThatHaveNoElementsAreLoweredOpByOp) {
  expect_schedule(R"(
func.func @main(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %n = stablehlo.negate %x : tensor<9xf32>
  %s = "stablehlo.sort"(%n) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<9xf32>) -> tensor<9xf32>
  return %s, %x : tensor<9xf32>, tensor<9xf32>
})",
                  {}, {"negate", "sort"});
}

// Each op reads the previous one at two indices: one kernel would have 2^25 loads.
TEST(Fusions, ThatWouldGrowWithoutBoundAreLoweredOpByOp) {
  std::string body = "func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {\n";
  for (int i = 0; i < 25; ++i) {
    body += fmt::format(
        "%r{0} = stablehlo.reverse %v{0}, dims = [0] : tensor<4xf32>\n"
        "%h{0} = stablehlo.minimum %v{0}, %r{0} : tensor<4xf32>\n"
        "%v{1} = stablehlo.subtract %h{0}, %r{0} : tensor<4xf32>\n",
        i, i + 1);
  }
  const auto module = fused(body + "return %v25 : tensor<4xf32>\n}");
  const auto program = hlo::compile_to_program(*module);
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(program->sequences[0].steps.size(), 75u);
}

TEST(Fusions, OfOneOpUseWhatTheOpWouldUse) {
  EXPECT_EQ(names_of_kernels(*fused(R"(
func.func @main(%x: tensor<1000x8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1000x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %s : tensor<8xf32>
})"),
                             {}),
            (std::vector<std::string>{"fusion_rows"}));
}

TEST(Schedules, NumbersOutOfRangeAreNoError) {
  const std::string text =
      dot("20x30xf32", "30x20xf32", "20x20xf32", "contracting_dims = [1] x [0]");
  for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{1} << 40}) {
    for (const char* name : {"lanes", "lanes_m", "each_n", "tile_k", "parts", "tile_along"}) {
      hlo::LowerOptions options;
      options.tuning.set(name, size);
      const auto program = hlo::compile_to_program(*imported(text), options);
      EXPECT_TRUE(program) << name << " " << size << " " << program.error().to_string();
    }
  }
}

TEST(Schedules, LimitsOfTheTarget) {
  const std::string text =
      dot("64x64xf32", "64x64xf32", "64x64xf32", "contracting_dims = [1] x [0]");
  hlo::LowerOptions options;
  const auto names = [&] {
    const auto program = hlo::compile_to_program(*imported(text), options);
    EXPECT_TRUE(program);
    return program->kernels[0].name;
  };
  EXPECT_EQ(names(), "dot_general_tiles");
  options.limits.scratch_bytes = 1 << 10;
  EXPECT_EQ(names(), "dot_general");
  options.limits.scratch_bytes = 20 << 10;
  EXPECT_EQ(names(), "dot_general_tiles");
  options.limits.private_memory = false;  // 16 KiB of sums and 8 KiB of factors
  EXPECT_EQ(names(), "dot_general");
  options.limits = {};
  options.limits.fma = false;
  EXPECT_EQ(names(), "dot_general");
}

}  // namespace
}  // namespace tenon::conformance
