// Reductions down short columns, pads and concatenations of short rows: the passes give the results
// of the ops themselves, and leave others alone.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

struct Reduction {
  std::string dims, result, dimensions;
  std::string op = "add", init = "0", type = "s32";
};

std::string reduction_text(const Reduction& r) {
  const std::string of_mlir = r.type == "s32" ? "i32" : r.type;
  return fmt::format(
      R"(func.func @main(%x: tensor<{0}{3}>) -> tensor<{1}{3}> {{
  %z = stablehlo.constant dense<{5}> : tensor<{3}>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.{4} across dimensions = [{2}] : (tensor<{0}{3}>, tensor<{3}>) -> tensor<{1}{3}>
  return %r : tensor<{1}{3}>
}})",
      r.dims + "x", r.result.empty() ? "" : r.result + "x", r.dimensions, of_mlir, r.op, r.init);
}

// Sums of small numbers are exact in any order.
std::vector<Literal> small_arguments_of(const Module& module) {
  Random random(3);
  std::vector<Literal> arguments;
  for (size_t p = 0; p < module.entry()->parameter_count(); ++p) {
    Literal& x = arguments.emplace_back(module.entry()->parameter(p).type().shape());
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.set_double(i, static_cast<double>(random.below(5)));
  }
  return arguments;
}

std::vector<Literal> evaluated(const Module& module) {
  auto results = Evaluator(module).run(*module.entry(), small_arguments_of(module));
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? *results : std::vector<Literal>();
}

// Whether the pass changed the program, whose results it kept.
bool changes(const std::string& text, const std::function<Result<bool>(Module&)>& pass) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  const std::vector<Literal> before = evaluated(**module);
  const auto changed = pass(**module);
  EXPECT_TRUE(changed) << changed.error().to_string();
  EXPECT_TRUE(verify(**module).ok()) << verify(**module).to_string();
  EXPECT_EQ(evaluated(**module), before) << text;
  return *changed;
}

bool splits(const Reduction& reduction) {
  PassOptions options;
  options.cost.short_columns = 128;
  return changes(reduction_text(reduction),
                 [&](Module& module) { return split_reductions(module, options); });
}

TEST(SplitReductions, KeepResults) {
  EXPECT_TRUE(splits({"4096x3", "3", "0"}));
  EXPECT_TRUE(splits({"8x1024x3", "8x3", "1"}));
  EXPECT_TRUE(splits({"8x32x32x3", "8x3", "1, 2"}));
  EXPECT_TRUE(splits({"8x32x32x3", "8x3", "2, 1"}));
  EXPECT_TRUE(splits({"2x3x100x7x2", "2x3x7x2", "2"}));
  EXPECT_TRUE(splits({"16384x32", "32", "0"})) << "parts alone";
  EXPECT_TRUE(splits({"65536x2", "2", "0"})) << "rows together, and parts";
  EXPECT_TRUE(splits({"4096x3", "3", "0", "maximum", "1"}));
  EXPECT_TRUE(splits({"4096x3", "3", "0", "multiply", "1"}));
  EXPECT_TRUE(splits({"4096x3", "3", "0", "add", "0.0", "f32"}));
  EXPECT_TRUE(splits({"4096x3", "3", "0", "and", "-1"}));
}

TEST(SplitReductions, OnlyWhereColumnsAreShort) {
  EXPECT_FALSE(splits({"1024x128", "128", "0"}));
  EXPECT_FALSE(splits({"3x4096", "3", "1"})) << "rows";
  EXPECT_FALSE(splits({"4096", "", "0"})) << "all";
  EXPECT_FALSE(splits({"64x16x64x3", "16x3", "0, 2"})) << "dimensions apart";
  EXPECT_FALSE(splits({"4099x3", "3", "0"})) << "a prime number of rows";
  EXPECT_FALSE(splits({"100x3", "3", "0"})) << "small";
  EXPECT_FALSE(splits({"4096x1", "1", "0"}));
}

// Elementwise ops that the reduction alone reads are on long rows, too; a broadcast down the
// columns is a row in memory, another one is reshaped.
TEST(SplitReductions, TakeWhatTheyReadAlong) {
  const auto program = [](const std::string& before) {
    return fmt::format(
        R"(func.func @main(%x: tensor<4x64x3xi32>, %c: tensor<3xi32>, %k: tensor<4x1x3xi32>, %l: tensor<64xi32>, %s: tensor<i32>) -> (tensor<4x3xi32>, tensor<4x64x3xi32>) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  {}
  %o = stablehlo.negate %x : tensor<4x64x3xi32>
  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x64x3xi32>, tensor<i32>) -> tensor<4x3xi32>
  return %r, %o : tensor<4x3xi32>, tensor<4x64x3xi32>
}})",
        before);
  };
  const auto broadcast = [](const std::string& from, const std::string& type,
                            const std::string& dims) {
    return fmt::format(
        "%b = stablehlo.broadcast_in_dim {}, dims = [{}] : (tensor<{}i32>) -> "
        "tensor<4x64x3xi32>\n  ",
        from, dims, type);
  };
  const std::string sum =
      "%a = stablehlo.subtract %x, %b : tensor<4x64x3xi32>\n  "
      "%y = stablehlo.multiply %a, %a : tensor<4x64x3xi32>";
  PassOptions options;
  options.cost.short_columns = 128;
  for (const std::string& before :
       {std::string("%y = stablehlo.multiply %x, %x : tensor<4x64x3xi32>"),
        broadcast("%c", "3x", "2") + sum, broadcast("%k", "4x1x3x", "0, 1, 2") + sum,
        broadcast("%l", "64x", "1") + sum, broadcast("%s", "", "") + sum,
        broadcast("%c", "3x", "2") + "%y = stablehlo.add %b, %b : tensor<4x64x3xi32>"}) {
    auto module = import_module(program(before), "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const auto changed = split_reductions(**module, options);
    EXPECT_TRUE(changed && !*changed) << "768 elements take no time";
    const auto large = [&](std::string text) {
      for (size_t at = 0; (at = text.find("64x", at)) != std::string::npos; at += 5)
        text.replace(at, 3, "1024x");
      return text;
    };
    EXPECT_TRUE(changes(large(program(before)), [&](Module& m) {
      return split_reductions(m, options);
    })) << before;
  }
}

// An init is taken once for each part.
TEST(SplitReductions, OnlyWhereTheInitChangesNothing) {
  EXPECT_FALSE(splits({"4096x3", "3", "0", "add", "1"}));
  EXPECT_FALSE(splits({"4096x3", "3", "0", "multiply", "2"}));
  EXPECT_FALSE(splits({"4096x3", "3", "0", "subtract", "0"}));
}

// Sums of narrow floats are in a wider type, and rounded once.
TEST(SplitReductions, NotOfNarrowFloats) {
  EXPECT_FALSE(splits({"4096x3", "3", "0", "add", "0.0", "bf16"}));
  EXPECT_FALSE(splits({"4096x3", "3", "0", "add", "0.0", "f16"}));
}

TEST(SplitReductions, NotUnlessTheTargetWants) {
  const std::string text = reduction_text({"4096x3", "3", "0"});
  EXPECT_FALSE(changes(text, [](Module& module) { return split_reductions(module); }));
}

std::string pad(const std::string& from, const std::string& to, const std::string& low,
                const std::string& high, const std::string& interior) {
  return fmt::format(R"(func.func @main(%x: tensor<{0}xf32>, %z: tensor<f32>) -> tensor<{1}xf32> {{
  %r = stablehlo.pad %x, %z, low = [{2}], high = [{3}], interior = [{4}] : (tensor<{0}xf32>, tensor<f32>) -> tensor<{1}xf32>
  return %r : tensor<{1}xf32>
}})",
                     from, to, low, high, interior);
}

std::string concatenation(const std::string& a, const std::string& b, const std::string& to,
                          int dimension) {
  return fmt::format(
      R"(func.func @main(%a: tensor<{0}xf32>, %b: tensor<{1}xf32>) -> tensor<{2}xf32> {{
  %r = stablehlo.concatenate %a, %b, dim = {3} : (tensor<{0}xf32>, tensor<{1}xf32>) -> tensor<{2}xf32>
  return %r : tensor<{2}xf32>
}})",
      a, b, to, dimension);
}

bool merges(const std::string& text) { return changes(text, merge_rows); }

TEST(MergeRows, KeepResults) {
  EXPECT_TRUE(merges(pad("8x16x16x3", "8x20x21x3", "0, 2, 4, 0", "0, 2, 1, 0", "0, 0, 0, 0")));
  EXPECT_TRUE(merges(pad("8x16x16x3", "8x33x14x3", "0, 1, -1, 0", "0, 1, -1, 0", "0, 1, 0, 0")));
  EXPECT_TRUE(merges(pad("20x10x3x2", "26x10x3x2", "3, 0, 0, 0", "3, 0, 0, 0", "0, 0, 0, 0")) ==
              false)
      << "rows are long already";
  EXPECT_TRUE(merges(pad("40x10x3x2", "40x12x3x2", "0, 1, 0, 0", "0, 1, 0, 0", "0, 0, 0, 0")));
  EXPECT_TRUE(merges(concatenation("8x16x16x3", "8x16x5x3", "8x16x21x3", 2)));
  EXPECT_TRUE(merges(concatenation("400x2", "200x2", "600x2", 0)));
}

TEST(MergeRows, OnlyWhereRowsAreShort) {
  EXPECT_FALSE(merges(pad("8x16x16x3", "8x16x16x5", "0, 0, 0, 1", "0, 0, 0, 1", "0, 0, 0, 0")));
  EXPECT_FALSE(merges(pad("8x16x32", "8x18x32", "0, 1, 0", "0, 1, 0", "0, 0, 0")));
  EXPECT_FALSE(merges(pad("8x16x16x3", "8x16x31x3", "0, 0, 0, 0", "0, 0, 0, 0", "0, 0, 1, 0")))
      << "elements between the rows";
  EXPECT_FALSE(merges(pad("4x4x3", "4x6x3", "0, 1, 0", "0, 1, 0", "0, 0, 0"))) << "small";
  EXPECT_FALSE(merges(concatenation("100x2x3", "100x2x5", "100x2x8", 2)));
}

}  // namespace
}  // namespace tenon::hlo
