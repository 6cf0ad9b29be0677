// Windows that slide: the pass gives the evaluator's results of the op itself, and leaves windows
// of other kinds alone.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/base/status.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

struct Windows {
  std::string type = "f32";
  std::string op = "add";
  std::string init = "0.0";
  std::string dims = "200";  // Of the operand, as in a tensor's type.
  std::string result = "161";
  std::string window = "40";
  std::string padding = "";  // "[[1, 2]]"; empty: none.
  std::string more = "";     // Further attributes.
};

std::unique_ptr<Module> module_of(const Windows& w) {
  const std::string padding =
      w.padding.empty() ? "" : fmt::format(", padding = dense<{}> : tensor<1x2xi64>", w.padding);
  auto made =
      import_module(fmt::format(R"(func.func @main(%x: tensor<{0}x{1}>) -> tensor<{2}x{1}> {{
  %z = stablehlo.constant dense<{3}> : tensor<{1}>
  %r = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {4}>{5}{6}}}> ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
    %s = stablehlo.{7} %a, %b : tensor<{1}>
    stablehlo.return %s : tensor<{1}>
  }}) : (tensor<{0}x{1}>, tensor<{1}>) -> tensor<{2}x{1}>
  return %r : tensor<{2}x{1}>
}})",
                                w.dims, w.type, w.result, w.init, w.window, padding, w.more, w.op),
                    "t");
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? *std::move(made) : nullptr;
}

Literal argument_of(const Module& module) {
  Literal x(module.entry()->parameter(0).type().shape());
  Random random(7);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.set_double(i, static_cast<double>(random.below(1000)) / 8 - 60);
  }
  if (is_float(x.element_type())) {
    x.set_double(3, std::nan(""));
    x.set_double(x.element_count() - 2, -HUGE_VAL);
  }
  return x;
}

// The results before and behind the pass; `changes` is whether it must apply.
void check(const Windows& windows, bool changes = true, double tolerance = 0) {
  SCOPED_TRACE(windows.type + " " + windows.op + " " + windows.dims + " " + windows.window);
  const auto module = module_of(windows);
  ASSERT_NE(module, nullptr);
  const std::vector<Literal> arguments = {argument_of(*module)};
  const Literal expected = Evaluator(*module).run(*module->entry(), arguments).value()[0];
  const auto changed = slide_windows(*module);
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(*changed, changes);
  ASSERT_TRUE(verify(*module).ok()) << verify(*module).to_string() << print_module(*module);
  const Literal actual = Evaluator(*module).run(*module->entry(), arguments).value()[0];
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const double e = expected.get_double(i);
    const double a = actual.get_double(i);
    if (std::isnan(e) && std::isnan(a)) continue;
    if (a == e) {  // Infinities too.
      EXPECT_EQ(std::signbit(a), std::signbit(e)) << i;
    } else {
      EXPECT_LE(std::abs(a - e), tolerance) << i << ": " << a << ", expected " << e;
    }
  }
  EXPECT_FALSE(slide_windows(*module).value()) << "it ends";
}

TEST(SlidingWindows, GiveTheSameBits) {
  check({.type = "i32", .init = "0"});
  check({.type = "i8", .init = "0"});  // Sums wrap.
  check({.type = "f32", .op = "maximum", .init = "0xFF800000"});
  check({.type = "f64", .op = "minimum", .init = "0x7FF0000000000000"});
  check({.type = "bf16", .op = "maximum", .init = "0xFF80"});
  check({.type = "i1", .op = "xor", .init = "false"});
  check({.type = "ui16", .op = "multiply", .init = "1"});
}

TEST(SlidingWindows, OfAnySizeAndPadding) {
  for (const int size : {65, 79, 80, 81, 119, 120, 400}) {
    check({.type = "i32",
           .init = "0",
           .dims = std::to_string(size + 39),
           .result = std::to_string(size),
           .window = "40"});
  }
  check({.type = "i32", .init = "0", .result = "201", .window = "40", .padding = "[[7, 33]]"});
  check({.type = "i32", .init = "0", .result = "361", .window = "40", .padding = "[[100, 100]]"});
  // The dimension in the middle; the last one.
  check({.type = "i32", .init = "0", .dims = "2x100x3", .result = "2x69x3", .window = "1, 32, 1"});
  check({.type = "i32", .init = "0", .dims = "3x100", .result = "3x69", .window = "1, 32"});
}

TEST(SlidingWindows, SumsOfFloatsAreInAnotherOrder) {
  check({.type = "f32", .init = "0.0"}, true, 1e-2);
  check({.type = "f64", .init = "0.0"}, true, 1e-10);
  // Its parts would be rounded to 8 bits.
  check({.type = "bf16", .init = "0.0"}, false);
}

TEST(SlidingWindows, LeaveOthersAlone) {
  check({.type = "i32", .init = "0", .result = "193", .window = "8"}, false);  // Short.
  check({.type = "i32", .init = "1"}, false);                                  // No identity.
  check({.type = "i32", .init = "0", .dims = "50", .result = "11"}, false);    // Few results.
  check({.type = "i32", .init = "0", .result = "81", .more = ", window_strides = array<i64: 2>"},
        false);
  check({.type = "i32", .init = "0", .result = "122", .more = ", window_dilations = array<i64: 2>"},
        false);
  // The blocks would be much larger than the arrays.
  check({.type = "i32",
         .init = "0",
         .dims = "64",
         .result = "64",
         .window = "4096",
         .padding = "[[4095, 0]]"},
        false);
  // Prefixes are a scan already.
  check({.type = "i32", .init = "0", .result = "200", .window = "200", .padding = "[[199, 0]]"},
        false);
}

// A region may combine in a wider type than its operand's: left alone.
TEST(SlidingWindows, LeaveWideningAlone) {
  auto module = import_module(R"(func.func @main(%x: tensor<200xf32>) -> tensor<161xf64> {
  %z = stablehlo.constant dense<0.0> : tensor<f64>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 40>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<200xf32>, tensor<f64>) -> tensor<161xf64>
  return %r : tensor<161xf64>
})",
                              "t");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_FALSE(slide_windows(**module).value());
}

// Nor are arrays that no machine holds made longer yet.
TEST(SlidingWindows, LeaveHugePaddingAlone) {
  auto module =
      import_module(R"(func.func @main(%x: tensor<1048576x100xf32>) -> tensor<1048576x100xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 17592186044416>,
      padding = dense<[[0, 0], [17592186044415, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1048576x100xf32>, tensor<f32>) -> tensor<1048576x100xf32>
  return %r : tensor<1048576x100xf32>
})",
                    "t");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_FALSE(slide_windows(**module).value());
}

}  // namespace
}  // namespace tenon::hlo
