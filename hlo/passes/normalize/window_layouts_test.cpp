// Layouts of windows: the pass changes no bit of a gradient, and leaves alone what would not gain.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
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

}  // namespace
}  // namespace tenon::hlo
