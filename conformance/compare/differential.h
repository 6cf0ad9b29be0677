// conformance/compare/: compares a device with the evaluator op by op, and reduces what differs.
//
// Comparison of a device with the reference evaluator, op by op.
//
// The device runs a program all of whose values are results. Then each instruction is evaluated by
// itself on the operands that the device had, and its results are compared with the device's: so
// one op's error is not the next one's, and a mismatch names the op.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// Results of @main of a program for arguments.
using Device = std::function<Result<std::vector<Literal>>(const hlo::Module& module,
                                                          const std::vector<Literal>& arguments)>;

/// One wrong result, or an op or program that failed.
struct Mismatch {
  std::string text;  ///< "stablehlo.add result 0 element [3, 1]: 1.5, expected 2.5 (bound: exact)"
  const hlo::Instruction* op = nullptr;  ///< Null when the program as a whole failed.
  uint32_t result = 0;
};

/// How close two results of one op must be (docs/ops.md): bit for bit where the op is exact on its
/// types, within the op's bound in ULP of the wide evaluation for functions, and for sums of floats
/// within n eps sum|terms|. NaNs are equal to each other.
///
/// `module`'s @main returns every value it computes, as conformance::generate makes it.
std::optional<Mismatch> compare(const hlo::Module& module, const std::vector<Literal>& arguments,
                                const Device& device);

/// A copy of `module` for compare(): calls inlined, every array that @main computes a result, and
/// calls without results (a program's own checks) left out.
Result<std::unique_ptr<hlo::Module>> with_all_values_returned(const hlo::Module& module);

}  // namespace tenon::conformance
