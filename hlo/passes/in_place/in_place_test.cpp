// Random loops whose state is updated in place, over arrays that fit a workgroup and over longer
// ones of which each iteration changes a part: as steps and as one kernel they give the evaluator's
// results.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/generate/generator.h"
#include "conformance/generate/random_loop.h"
#include "core/base/random.h"
#include "hlo/driver/interpreted.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

// Runs it as steps and as one kernel, with and without updates in place.
void check(const hlo::Module& module, const std::vector<Literal>& arguments,
           const std::vector<Literal>& expected, uint64_t seed) {
  for (const int64_t in_one_kernel : {0, 1}) {
    SCOPED_TRACE(in_one_kernel);
    hlo::InterpretedRunOptions options;
    options.lower.tuning = hlo::lower::TuningParameters::random(seed);
    options.lower.tuning.set("in_place", seed % 8 == 0 ? 0 : 1);
    options.lower.tuning.set("slice-update", seed % 3 == 0 ? 0 : 1);
    options.lower.tuning.set("control_in_workgroup", in_one_kernel);
    options.interpreter.order = static_cast<kernel::Order>(seed % 3);
    options.interpreter.seed = seed;
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto actual =
        hlo::run_interpreted(module, arguments, hlo::Checks(&failures, &checks), options);
    ASSERT_TRUE(actual) << actual.error().to_string();
    EXPECT_EQ(*actual, expected);
  }
}

// No array is so long that an index needs 64 bits, which a target may not support.
bool has_loop_step(const hlo::Module& module) {
  const auto program = hlo::lower_module(module);
  EXPECT_TRUE(program);
  for (const kernel::Kernel& kernel : program->kernels) {
    EXPECT_EQ(kernel.index_type, ElementType::kS32) << kernel.name;
  }
  const auto is_loop = [](const program::Step& step) {
    return std::holds_alternative<program::While>(step.action);
  };
  return std::ranges::any_of(program->sequences, [&](const program::Sequence& sequence) {
    return std::ranges::any_of(sequence.steps, is_loop);
  });
}

void check_random_loops(bool is_long) {
  int64_t in_one_kernel = 0;
  constexpr uint64_t kCount = 150;
  for (uint64_t seed = 0; seed < kCount; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_loop(seed, is_long);
    SCOPED_TRACE(text);
    const auto module = hlo::import_module(text, "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const std::vector<Literal> arguments = generate_arguments(**module, 7);
    const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
    ASSERT_TRUE(expected) << expected.error().to_string();
    const auto optimized = (*module)->clone();
    ASSERT_TRUE(hlo::run_passes(*optimized, hlo::optimizing_passes()).ok());
    check(**module, arguments, *expected, seed);
    check(*optimized, arguments, *expected, seed);
    in_one_kernel += has_loop_step(*optimized) ? 0 : 1;
  }
  // Long loops that read a matrix after changing it, or change all of it, take several kernels.
  EXPECT_GT(in_one_kernel, is_long ? kCount / 5 : kCount - 1);
}

// A loop of three iterations over `types`, arrays that are arguments and results; `body` computes
// its next %j and the values that it returns after it.
std::string loop_over(const std::vector<std::string>& types, const std::string& body) {
  std::string parameters, state, begin;
  for (size_t i = 0; i < types.size(); ++i) {
    parameters += fmt::format("{}%a{}: {}", i == 0 ? "" : ", ", i, types[i]);
    state += fmt::format(", %s{0} = %a{0}", i);
    begin += fmt::format("{}%r#{}", i == 0 ? "" : ", ", i + 1);
  }
  const std::string all = fmt::format("{}", fmt::join(types, ", "));
  return fmt::format(R"(func.func @main({0}) -> ({1}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:{2} = stablehlo.while(%i = %zero{3}) : tensor<i32>, {1}
  cond {{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
{4}
  }}
  return {5} : {1}
}})",
                     parameters, all, types.size() + 1, state, body, begin);
}

void check_loop(const std::string& text) {
  SCOPED_TRACE(text);
  const auto module = hlo::import_module(text, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_FALSE(has_loop_step(**module));
  const std::vector<Literal> arguments = generate_arguments(**module, 11);
  const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (const uint64_t seed : {7, 8, 9}) check(**module, arguments, *expected, seed);
}

// Loops that store a slice of the array, shifted by one, and an element into it.
TEST(InPlace, LoopsOfEveryType) {
  for (const char* const type : {"i1", "ui2", "i4", "ui8", "i64", "bf16", "f64", "complex<f32>"}) {
    for (const int64_t size : {1, 8, 2000}) {
      check_loop(loop_over({fmt::format("tensor<{}x{}>", size, type)}, fmt::format(R"(
    %e = stablehlo.dynamic_slice %s0, %i, sizes = [1] : (tensor<{0}x{1}>, tensor<i32>) -> tensor<1x{1}>
    %u = stablehlo.dynamic_update_slice %s0, %e, %j : (tensor<{0}x{1}>, tensor<1x{1}>, tensor<i32>) -> tensor<{0}x{1}>
    %f = stablehlo.dynamic_slice %u, %zero, sizes = [1] : (tensor<{0}x{1}>, tensor<i32>) -> tensor<1x{1}>
    %g = stablehlo.reshape %f : (tensor<1x{1}>) -> tensor<{1}>
    %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %v = "stablehlo.scatter"(%u, %at, %g) ({{
    ^bb0(%old: tensor<{1}>, %new: tensor<{1}>):
      stablehlo.return %new : tensor<{1}>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}} : (tensor<{0}x{1}>, tensor<1xi32>, tensor<{1}>) -> tensor<{0}x{1}>
    stablehlo.return %j, %v : tensor<i32>, tensor<{0}x{1}>)",
                                                                                   size, type)));
    }
  }
}

// A scatter with two results; its updates and indices are read from one of them.
TEST(InPlace, ScattersOfTwoArrays) {
  for (const int64_t size : {8, 2000}) {
    check_loop(loop_over({fmt::format("tensor<{}xi32>", size), fmt::format("tensor<{}xf32>", size)},
                         fmt::format(R"(
    %e = stablehlo.dynamic_slice %s0, %i, sizes = [6] : (tensor<{0}xi32>, tensor<i32>) -> tensor<6xi32>
    %m = stablehlo.constant dense<7> : tensor<6xi32>
    %at = stablehlo.and %e, %m : tensor<6xi32>
    %v = stablehlo.convert %at : (tensor<6xi32>) -> tensor<6xf32>
    %z:2 = "stablehlo.scatter"(%s0, %s1, %at, %e, %v) ({{
    ^bb0(%x: tensor<i32>, %y: tensor<f32>, %p: tensor<i32>, %q: tensor<f32>):
      %t = stablehlo.subtract %p, %x : tensor<i32>
      %w = stablehlo.subtract %q, %y : tensor<f32>
      stablehlo.return %t, %w : tensor<i32>, tensor<f32>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : (tensor<{0}xi32>, tensor<{0}xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xf32>) -> (tensor<{0}xi32>, tensor<{0}xf32>)
    stablehlo.return %j, %z#0, %z#1 : tensor<i32>, tensor<{0}xi32>, tensor<{0}xf32>)",
                                     size)));
  }
}

// A seed that fails must fail with every compiler.
TEST(InPlace, RandomLoopsAreTheSameByEveryCompiler) {
  uint64_t digest = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const char c : random_loop(seed, seed % 2 == 1)) {
      digest = mix_bits(digest ^ static_cast<unsigned char>(c));
    }
  }
  EXPECT_EQ(digest, 0x13533e49600e48e0u);
}

TEST(InPlace, RandomLoops) { check_random_loops(false); }
TEST(InPlace, RandomLoopsOverLongArrays) { check_random_loops(true); }

}  // namespace
}  // namespace tenon::conformance
