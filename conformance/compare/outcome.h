// The outcome of a case, and what is known about it.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/program/step_counts.h"
#include "core/types/element_type.h"

namespace tenon::conformance {

enum class Outcome : uint8_t {
  kPass,
  kNotRun,        ///< The results are right, but the device ran none of the steps.
  kNotSupported,  ///< The device declined a kernel, and the host ran it.
  kFail,          ///< A wrong result, or an error in place of one.
  kCrash,         ///< The process ended.
  kTimeout,
  kDeviceLost,
  kHarnessError,  ///< The suite itself failed, the device is not to blame.
};
inline constexpr size_t kOutcomeCount = static_cast<size_t>(Outcome::kHarnessError) + 1;

/// "not-run"
std::string_view name_of(Outcome outcome);
std::optional<Outcome> outcome_from_name(std::string_view name);
/// Whether a run with this outcome fails as a whole: with any other than kPass.
bool is_failure(Outcome outcome);

/// The component that computed a wrong result.
enum class Blame : uint8_t {
  kNone,
  kLowering,    ///< Tenon: the kernel interpreter computes the same wrong result.
  kKernel,      ///< A kernel that the device ran.
  kNativeCall,  ///< A library call that the device took.
  kInterface,   ///< A function of the interface (plugin.h), called by itself.
  kHost,        ///< A step that the host ran.
};
std::string_view name_of(Blame blame);

/// The largest error of an op on a type, in a case.
struct LedgerEntry {
  std::string op;  ///< "stablehlo.tanh"
  ElementType type{};
  double ulp = 0;
  double bound = 0;      ///< The required bound, in ULP.
  int64_t elements = 0;  ///< Number of results compared.
  std::string operands;  ///< The operands of the worst result: "0x1.8p+1, -3.5".
  std::string got;
  std::string exact;
};

struct CaseResult {
  Outcome outcome = Outcome::kPass;
  std::string message;  ///< The error, one line.
  Blame blame = Blame::kNone;
  std::string step;        ///< The step at fault: "kernel add_1 (stablehlo.add)".
  std::string reproducer;  ///< A .mlir file that shows the failure.
  program::StepCounts steps;
  std::vector<LedgerEntry> ledger;
};

}  // namespace tenon::conformance
