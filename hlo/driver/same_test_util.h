// Compares a program on interp with the evaluator, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/driver/interpreted.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"

namespace tenon::conformance {

enum class Needs { kKernels, kHostSteps };

/// Checks that both give the same bytes, and that kernels, or at least host steps, took part.
inline void expect_same(const std::string& text, const std::vector<Literal>& arguments,
                        Needs needs = Needs::kKernels) {
  const auto module = hlo::import_module(text, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  program::StepCounts steps;
  hlo::InterpretedRunOptions options;
  options.steps = &steps;
  const auto actual =
      hlo::run_interpreted(**module, arguments, hlo::Checks(&failures, &checks), options);
  ASSERT_TRUE(actual) << actual.error().to_string();
  EXPECT_GT(needs == Needs::kKernels ? steps.on_device() : steps.host, 0);
  ASSERT_EQ(actual->size(), expected->size());
  for (size_t i = 0; i < actual->size(); ++i) EXPECT_EQ((*actual)[i], (*expected)[i]) << i;
}

}  // namespace tenon::conformance
