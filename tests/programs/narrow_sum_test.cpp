// Sums of narrow floats are kept in a wider type and rounded once, on every device
// (docs/numerics.md): a sum that is rounded at each step would stop growing when half a unit equals
// an element.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/programs/every_device_test_util.h"

namespace tenon::conformance {
namespace {

struct Case {
  const char* type;
  int64_t count;
  double element;
  double sum;  ///< The number of the type nearest to the exact sum.
};

// With rounding at each step the sums would be 256, 2048 and 16; f32 gives the exact sum.
const Case kCases[] = {{"bf16", 4096, 1, 4096},
                       {"f16", 4096, 1, 4096},
                       {"f8E4M3FN", 64, 1, 64},
                       // More leaves than one stage processes.
                       {"bf16", 1 << 17, 1, 1 << 17},
                       {"f16", 1 << 16, 0.0625, 4096}};

std::string reduce_text(const Case& c) {
  return fmt::format(R"(func.func @main(%x: tensor<{0}x{1}>) -> tensor<{1}> {{
  %zero = stablehlo.constant dense<0.0> : tensor<{1}>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<{0}x{1}>, tensor<{1}>) -> tensor<{1}>
  return %sum : tensor<{1}>
}})",
                     c.count, c.type);
}

std::string window_text(const Case& c) {
  return fmt::format(R"(func.func @main(%x: tensor<{0}x{1}>) -> tensor<1x{1}> {{
  %zero = stablehlo.constant dense<0.0> : tensor<{1}>
  %sum = "stablehlo.reduce_window"(%x, %zero) <{{window_dimensions = array<i64: {0}>}}> ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
    %s = stablehlo.add %a, %b : tensor<{1}>
    stablehlo.return %s : tensor<{1}>
  }}) : (tensor<{0}x{1}>, tensor<{1}>) -> tensor<1x{1}>
  return %sum : tensor<1x{1}>
}})",
                     c.count, c.type);
}

class NarrowSums : public EveryDevice {};

TEST_P(NarrowSums, AreRoundedOnce) {
  for (const Case& c : kCases) {
    for (const std::string& text : {reduce_text(c), window_text(c)}) {
      Literal elements(Shape(*element_type_from_mlir_name(c.type), {c.count}));
      for (int64_t i = 0; i < c.count; ++i) elements.set_double(i, c.element);
      EXPECT_EQ(result_of(text, {elements}).get_double(0), c.sum) << text;
    }
  }
}

TENON_ON_EVERY_DEVICE(NarrowSums);

}  // namespace
}  // namespace tenon::conformance
