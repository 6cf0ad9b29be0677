// Loops whose state is updated in place, random ones, over arrays that fit a workgroup and over
// longer ones, of which each turn changes a part: by steps and as one kernel they give what the
// evaluator gives.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/generator.h"
#include "conformance/random_loop.h"
#include "hlo/compile/interp.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

// By steps and as one kernel, in one place and not.
void check(const hlo::Module& module, const std::vector<Literal>& arguments,
           const std::vector<Literal>& expected, uint64_t seed) {
  for (const int64_t in_one_kernel : {0, 1}) {
    SCOPED_TRACE(in_one_kernel);
    hlo::InterpOptions options;
    options.lower.schedule = hlo::lower::Schedule::random(seed);
    options.lower.schedule.set("in_place", seed % 8 == 0 ? 0 : 1);
    options.lower.schedule.set("update_slice", seed % 3 == 0 ? 0 : 1);
    options.lower.schedule.set("control_in_workgroup", in_one_kernel);
    options.interpreter.order = static_cast<kernel::Order>(seed % 3);
    options.interpreter.seed = seed;
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto actual =
        hlo::run_on_interp(module, arguments, hlo::Checks(&failures, &checks), options);
    ASSERT_TRUE(actual) << actual.error().to_string();
    EXPECT_EQ(*actual, expected);
  }
}

bool has_loop_step(const hlo::Module& module) {
  const auto program = hlo::lower_module(module);
  EXPECT_TRUE(program);
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
  // Of long ones those are not that read a matrix behind its change or change it as a whole.
  EXPECT_GT(in_one_kernel, is_long ? kCount / 5 : kCount - 1);
}

TEST(InPlace, RandomLoops) { check_random_loops(false); }
TEST(InPlace, RandomLoopsOverLongArrays) { check_random_loops(true); }

}  // namespace
}  // namespace tenon::conformance
