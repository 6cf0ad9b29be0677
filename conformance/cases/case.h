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
#include <span>
#include <string>
#include <vector>

#include "conformance/compare/bounds.h"
#include "conformance/compare/outcome.h"
#include "conformance/target/target.h"

namespace tenon::conformance {

/// The smallest run that contains a case.
enum class Tier : uint8_t {
  kSmoke,  ///< Under 10 s: each op once.
  kQuick,  ///< Under 2 min: each op on each type.
  kFull,
  kExtended,  ///< kFull, and what depends on the machine beside the device: speed, large arrays.
};

/// Targets that lack it leave the case out.
enum class CaseNeeds : uint8_t {
  kNothing,
  kInterface,  ///< The functions of a backend (Target::release_device).
  kPlugin,     ///< A plug-in's file, for its C ABI.
};

/// The target of a case, and how to run it.
struct CaseContext {
  Target& target;
  /// The seed of the case, drawn from the run's seed and the case's name.
  uint64_t seed = 0;
  /// Whether to reduce a program that fails. Takes up to 2,000 executions.
  bool reduce = true;
  /// Bounds that the target's declaration relaxes.
  std::span<const RelaxedBound> relaxed = {};
  /// Gets a failure before its program is reduced, which may take too long or crash.
  std::function<void(const CaseResult&)> on_failure = {};
};

struct ConformanceCase {
  std::string name;
  std::function<CaseResult(CaseContext&)> run;
  Tier tier = Tier::kFull;
  CaseNeeds needs = CaseNeeds::kNothing;
  /// Whether it runs after all others, while no other case does: it measures, or takes the memory.
  bool alone = false;
};

/// A cell of the table of ops, types and variants that no case covers.
struct LeftOut {
  std::string cell;  ///< "op/abs/u8", "op/infeed": the beginning of the names it would have.
  std::string reason;
};

/// Cases, and what no case covers.
struct CaseList {
  std::vector<ConformanceCase> cases;
  std::vector<LeftOut> left_out;
};

/// Every case, always in the same order; conformance/cases/list.txt has them by name. With what is
/// left out, each op of the table is there on each type that its row admits.
const CaseList& case_list();
inline const std::vector<ConformanceCase>& all_cases() { return case_list().cases; }

// --- The groups, each of which appends its cases

void add_elementwise_cases(CaseList& list);
void add_movement_cases(CaseList& list);
void add_reduction_cases(CaseList& list);
void add_contraction_cases(CaseList& list);
void add_linear_algebra_cases(CaseList& list);
void add_control_flow_cases(CaseList& list);
void add_broadcasting_cases(CaseList& list);
void add_normalization_cases(CaseList& list);
void add_random_bits_cases(CaseList& list);
void add_quantized_cases(CaseList& list);
void add_dynamic_cases(CaseList& list);
void add_pattern_cases(CaseList& list);
void add_random_cases(CaseList& list);
void add_model_cases(CaseList& list);
void add_determinism_cases(CaseList& list);
void add_seam_cases(CaseList& list);
void add_abi_cases(CaseList& list);
void add_lifetime_cases(CaseList& list);
void add_kernel_cases(CaseList& list);
void add_runtime_cases(CaseList& list);
void add_speed_cases(CaseList& list);
void add_large_cases(CaseList& list);
/// Appends the ops that the groups leave out as a whole; the last to be called.
void add_left_out(CaseList& list);

}  // namespace tenon::conformance
