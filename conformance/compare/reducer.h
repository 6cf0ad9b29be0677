// The reducer: a failing program made small.
#pragma once

#include "conformance/compare/differential.h"

namespace tenon::conformance {

struct Failure {
  std::unique_ptr<hlo::Module> module;
  std::vector<Literal> arguments;
  std::string text;  ///< The message of its mismatch.
};

/// Makes `failure` smaller as long as it still mismatches on `device`: instructions become
/// parameters that hold what they gave, values that nothing needs go, arrays are cut to fewer
/// elements where the ops allow it, numbers become 0 or 1. Deterministic; at most `budget` trials.
Failure reduce(Failure failure, const Device& device, int budget = 2000);

/// Who is at fault: `lowering` if the kernel interpreter, given what the device was given, is wrong
/// too; `backend` if it is right.
enum class Fault : uint8_t { kLowering, kBackend };
std::string_view name_of(Fault fault);
/// Replays a failure of a device through `interpreter`, which lowers as the device's driver does.
Fault fault_of(const Failure& failure, const Device& interpreter);

/// The program with its arguments as constants and the mismatch as a comment: a .mlir file that
/// `tenon run` takes.
std::string to_mlir(const Failure& failure);

}  // namespace tenon::conformance
