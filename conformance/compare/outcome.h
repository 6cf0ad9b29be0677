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
  kQualityWarning,  ///< An error beyond the required bound, within one that a declaration relaxes.
  kWaived,          ///< A failure that a waiver admits.
  kNotRun,          ///< The results are right, but the device ran none of the steps.
  kNotSupported,    ///< The device declined a kernel, which the host ran, or the whole program.
  kUnexpectedPass,  ///< It passes, although it is declared as not supported, or waived.
  kFail,            ///< A wrong result, or an error in place of one.
  kCrash,           ///< The process ended.
  kTimeout,
  kDeviceLost,
  kHarnessError,  ///< The suite itself failed, the device is not to blame.
};
inline constexpr size_t kOutcomeCount = static_cast<size_t>(Outcome::kHarnessError) + 1;

/// "not-run"
std::string_view name_of(Outcome outcome);
std::optional<Outcome> outcome_from_name(std::string_view name);
/// Whether the results are right: kPass, or kQualityWarning.
bool is_pass(Outcome outcome);

/// The component that computed a wrong result.
enum class Blame : uint8_t {
  kNone,
  kLowering,    ///< Tenon: the kernel interpreter computes the same wrong result.
  kKernel,      ///< A kernel that the device ran.
  kNativeCall,  ///< A library call that the device took.
  kInterface,   ///< A function of the interface (plugin.h): by itself, or because it reported an
                ///< error.
  kHost,        ///< A step that the host ran.
};
std::string_view name_of(Blame blame);

/// The unit in which a ledger counts errors.
enum class ErrorUnit : uint8_t {
  kUlp,    ///< Units in the last place of the exact result; of a complex one: of its modulus.
  kBound,  ///< Shares of the bound, which depends on the operands: of a sum, a factor, a transform.
};
std::string_view name_of(ErrorUnit unit);

/// The largest error of an op on a type, in a case.
struct LedgerEntry {
  std::string op;  ///< "stablehlo.tanh"
  ElementType type{};
  double error = 0;
  double bound = 0;      ///< The required bound: 1 if errors are shares of it.
  int64_t elements = 0;  ///< Number of results compared.
  std::string operands;  ///< The operands of the worst result: "0x1.8p+1, -3.5".
  std::string got;
  std::string exact;
  double relaxed = 0;  ///< The bound to which a declaration relaxes it; 0 if none does.
  ErrorUnit unit = ErrorUnit::kUlp;
};

/// "0.312 ULP", "0.312 of its bound"; of an infinite error: "no number ULP".
std::string error_text(double error, ErrorUnit unit);

struct CaseResult {
  Outcome outcome = Outcome::kPass;
  std::string message;  ///< The error, one line.
  Blame blame = Blame::kNone;
  std::string step;        ///< The step at fault: "add_1 (stablehlo.add)".
  std::string arguments;   ///< The operands of the wrong result: "f32[3] {1, 2, 3}; s32[] {7}".
  std::string reproducer;  ///< A .mlir file that shows the failure.
  /// The kernel to blame as the device gets it, with the interpreter's values (kernel_listing.h).
  std::string listing;
  program::StepCounts steps;
  std::vector<LedgerEntry> ledger;
  /// The outcome before a declaration or a waiver changed it.
  std::optional<Outcome> found;
  std::string excuse;  ///< Why the declaration or a waiver admits this outcome.
};

/// Whether a run fails as a whole because of this result: every one but passes, waived failures,
/// and excused cases that are not supported.
bool is_failure(const CaseResult& result);

}  // namespace tenon::conformance
