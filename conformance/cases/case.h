// conformance/cases/: the cases of the conformance suite, a file for each group.
//
// Cases are generated: op by op from the op table, with shapes, values and attributes from lists
// (shapes.h, values.h). Names are stable, because profiles and waivers refer to them:
//
//   op/add/f32/prime/nan          group, op, element type, shape or variant, class of values
//
// docs/conformance.md describes the groups. Thread-safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/compare/outcome.h"
#include "conformance/target/target.h"

namespace tenon::conformance {

/// The smallest run that contains a case.
enum class Tier : uint8_t {
  kSmoke,  ///< Under 10 s: each op once.
  kQuick,  ///< Under 2 min: each op on each type.
  kFull,
};

/// The target of a case, and how to run it.
struct CaseContext {
  Target& target;
  /// The seed of the case, drawn from the run's seed and the case's name.
  uint64_t seed = 0;
  /// Whether to reduce a program that fails. Takes up to 2,000 executions.
  bool reduce = true;
};

struct ConformanceCase {
  std::string name;
  std::function<CaseResult(CaseContext&)> run;
  Tier tier = Tier::kFull;
};

/// Every case, always in the same order; conformance/cases/list.txt has them by name.
const std::vector<ConformanceCase>& all_cases();

// --- The groups, each of which appends its cases

void add_elementwise_cases(std::vector<ConformanceCase>& cases);
void add_movement_cases(std::vector<ConformanceCase>& cases);
void add_reduction_cases(std::vector<ConformanceCase>& cases);

}  // namespace tenon::conformance
