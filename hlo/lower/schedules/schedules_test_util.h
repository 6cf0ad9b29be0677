// Shared by the tests of schedules and of lowerings: modules, parameters, names of kernels.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/process/full_test_util.h"
#include "core/base/random.h"
#include "hlo/driver/compile.h"
#include "hlo/driver/interpreted.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {

/// Tuning parameters, and schedules as flags.
using Choices = std::vector<std::pair<std::string, int64_t>>;

inline std::unique_ptr<hlo::Module> imported(const std::string& text) {
  auto module = hlo::import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  return std::move(*module);
}

inline hlo::lower::TuningParameters tuned(const Choices& choices) {
  hlo::lower::TuningParameters tuning;
  for (const auto& [name, value] : choices) tuning.set(name, value);
  return tuning;
}

inline std::vector<std::string> names_of_kernels(const hlo::Module& module,
                                                 const Choices& choices) {
  hlo::LowerOptions options;
  options.tuning = tuned(choices);
  const auto program = hlo::compile_to_program(module, options);
  EXPECT_TRUE(program) << program.error().to_string();
  std::vector<std::string> names;
  for (const kernel::Kernel& kernel : program->kernels) names.push_back(kernel.name);
  return names;
}

/// How the run number `seed` interprets: the first three with `choices`, later ones with random
/// parameters; in one of three orders.
inline hlo::InterpretedRunOptions options_of_run(const Choices& choices, int seed) {
  hlo::InterpretedRunOptions options;
  const auto number = static_cast<uint64_t>(seed);
  options.lower.tuning = seed < 3 ? tuned(choices) : hlo::lower::TuningParameters::random(number);
  options.interpreter.order = static_cast<kernel::Order>(seed % 3);
  options.interpreter.seed = number;
  return options;
}

/// The whole entry as one fusion.
inline std::unique_ptr<hlo::Module> fused(const std::string& text) {
  std::unique_ptr<hlo::Module> module = imported(text);
  std::vector<hlo::Instruction*> ops;
  for (hlo::Instruction& op : *module->entry()) {
    if (op.code() != hlo::OpCode::kReturn) ops.push_back(&op);
  }
  const auto fusion = hlo::fuse(ops);
  EXPECT_TRUE(fusion) << fusion.error().to_string();
  EXPECT_TRUE(hlo::verify(*module).ok()) << hlo::verify(*module).to_string();
  return module;
}

/// Small whole numbers, or numbers whose sums depend on the order.
inline std::vector<Literal> arguments_of(const hlo::Module& module, bool whole = true) {
  std::vector<Literal> arguments;
  Random random(5);
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal array(module.entry()->parameter(i).shape());
    for (int64_t k = 0; k < array.element_count(); ++k) {
      const double number =
          whole ? static_cast<double>(random.below(7) - 3) : random.unit() * 2 - 1;
      if (is_complex(array.element_type())) {
        array.set_complex(k, {number, static_cast<double>(random.below(5) - 2)});
      } else {
        array.set_double(k, number);
      }
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

inline void expect_results(const hlo::Module& module, const std::vector<Literal>& arguments,
                           const std::vector<Literal>& expected,
                           const hlo::InterpretedRunOptions& options) {
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto actual =
      hlo::run_interpreted(module, arguments, hlo::Checks(&failures, &checks), options);
  ASSERT_TRUE(actual) << actual.error().to_string();
  ASSERT_EQ(actual->size(), expected.size());
  for (size_t i = 0; i < actual->size(); ++i) EXPECT_EQ((*actual)[i], expected[i]) << i;
}

/// Runs of `options_of_run` that have its choices, one in each order; more have random parameters.
constexpr int kRunsOfChoices = 3;

inline int runs_of_schedules() { return tests_take_all() ? 33 : 12; }

inline std::vector<int> first_runs(int count) {
  std::vector<int> runs(static_cast<size_t>(count));
  std::iota(runs.begin(), runs.end(), 0);
  return runs;
}

/// Where a test has many modules: some of the runs, which the sizes of a module's arguments pick,
/// so that each order, and each of six sets of random parameters, comes with some module; `random`
/// of these sets, and `of_choices` orders. All nine runs with TENON_FULL.
inline std::vector<int> picked_runs(const hlo::Module& module, int of_choices, int random) {
  constexpr int kRandom = 6;
  if (tests_take_all()) return first_runs(kRunsOfChoices + kRandom);
  uint64_t sum = 0;
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    for (const int64_t size : module.entry()->parameter(i).shape().dims()) {
      sum = mix_bits(sum + static_cast<uint64_t>(size));
    }
  }
  const int first = static_cast<int>(sum % kRandom);
  std::vector<int> runs;
  for (int k = 0; k < of_choices; ++k) runs.push_back((first + k) % kRunsOfChoices);
  for (int k = 0; k < random; ++k) {
    runs.push_back(kRunsOfChoices + (first + of_choices + k) % kRandom);
  }
  return runs;
}

/// Checks that `choices` give kernels with these names, and that they and random choices give the
/// evaluator's results.
inline void expect_schedule(const std::string& text, const Choices& choices,
                            const std::vector<std::string>& kernels, const std::vector<int>& runs) {
  const auto plain = imported(text);
  const auto module = fused(text);
  EXPECT_EQ(names_of_kernels(*module, choices), kernels);
  const std::vector<Literal> arguments = arguments_of(*plain);
  const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (const int seed : runs) {
    SCOPED_TRACE(seed);
    expect_results(*module, arguments, *expected, options_of_run(choices, seed));
  }
}

inline void expect_schedule(const std::string& text, const Choices& choices,
                            const std::vector<std::string>& kernels,
                            int runs = runs_of_schedules()) {
  expect_schedule(text, choices, kernels, first_runs(runs));
}

inline std::string dot(const std::string& lhs, const std::string& rhs, const std::string& result,
                       const std::string& numbers) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}>, %y: tensor<{1}>) -> tensor<{2}> {{\n%d = "
      "stablehlo.dot_general %x, %y, {3} : (tensor<{0}>, tensor<{1}>) -> tensor<{2}>\n"
      "return %d : tensor<{2}>\n}}",
      lhs, rhs, result, numbers);
}

}  // namespace tenon::conformance
