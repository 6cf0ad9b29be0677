// Shared by the tests of schedules and of lowerings: modules, parameters, names of kernels.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "hlo/driver/compile.h"
#include "hlo/driver/interpreted.h"
#include "hlo/import/import.h"

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

}  // namespace tenon::conformance
