// conformance/compare/: compares a device with the evaluator op by op, and reduces what differs.
//
// The device runs a program in which all values are results. Then each instruction is evaluated
// separately on the operands that the device computed, and its results are compared with the
// device's. An error of one op therefore does not affect the next, and a mismatch names the op.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "conformance/compare/bounds.h"
#include "conformance/compare/ledger.h"
#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// Computes the results of a program's @main for arguments.
using Device = std::function<Result<std::vector<Literal>>(const hlo::Module& module,
                                                          const std::vector<Literal>& arguments)>;

/// One wrong result, or an op or program that failed.
struct Mismatch {
  std::string text;  ///< "stablehlo.add result 0 element [3, 1]: 1.5, expected 2.5 (bound: exact)"
  const hlo::Instruction* op = nullptr;  ///< Null if the program as a whole failed.
  uint32_t result = 0;
  int64_t element = -1;       ///< The first wrong element; -1 if there is none.
  std::string operands = {};  ///< The op's operands, in short: "f32[3] {1, 2, 3}; s32[] {7}".
  bool is_of_suite = false;   ///< The evaluator failed: nothing is known of the device.
};

/// Bounds that are relaxed, and the first result that only they admit.
struct Relaxation {
  std::span<const RelaxedBound> bounds;
  std::optional<Mismatch> warning;
};

/// Compares each op's results with the evaluator: bit for bit if the op is exact on its types,
/// within the bound in ULP (conformance/compare/bounds.h) of the wide evaluation for functions, and
/// within n eps sum|terms| for sums of floats. NaNs are equal to each other.
///
/// `module`'s @main must return every value that it computes, as conformance::generate makes it.
std::optional<Mismatch> compare(const hlo::Module& module, const std::vector<Literal>& arguments,
                                const Device& device);

/// The same for results that a device has computed. Records the errors of functions in `ledger`,
/// if there is one. With `relaxation`, the bounds of elementwise ops on floats and complex numbers
/// are relaxed, and the errors of exact ones among them are in the ledger too.
std::optional<Mismatch> compare_results(const hlo::Module& module,
                                        const std::vector<Literal>& arguments,
                                        const std::vector<Literal>& results,
                                        Ledger* ledger = nullptr, Relaxation* relaxation = nullptr);

/// The same for a program that returns results only, not all of its values: each element is within
/// four times the evaluator's own error, which it makes where it rounds as the program says, plus
/// eight units of the greatest element of the result. Integers are equal.
std::optional<Mismatch> compare_whole(const hlo::Module& module,
                                      const std::vector<Literal>& arguments,
                                      const std::vector<Literal>& results);

/// The same for a program whose results have the same bits on every device: those of the evaluator,
/// but for the sign and payload of NaNs.
std::optional<Mismatch> compare_bits(const hlo::Module& module,
                                     const std::vector<Literal>& arguments,
                                     const std::vector<Literal>& results);

/// A copy of `module` for compare(): calls are inlined, @main returns every array that it computes,
/// and calls without results (a program's own checks) are removed.
Result<std::unique_ptr<hlo::Module>> with_all_values_returned(const hlo::Module& module);

}  // namespace tenon::conformance
