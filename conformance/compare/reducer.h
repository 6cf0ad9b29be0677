// The reducer: makes a failing program small.
#pragma once

#include "conformance/compare/differential.h"

namespace tenon::conformance {

struct Failure {
  std::unique_ptr<hlo::Module> module;
  std::vector<Literal> arguments;
  std::string text;  ///< The message of its mismatch.
};

/// Makes `failure` smaller while it still mismatches on `device`: instructions become parameters
/// with the values that they computed, unused values are removed, arrays lose elements where the
/// ops allow it, numbers become 0 or 1. Deterministic; at most `budget` trials.
Failure reduce(Failure failure, const Device& device, int budget = 2000);

/// The component at fault: `lowering` if the kernel interpreter, given the same program, is wrong
/// too; `backend` if it is right.
enum class Fault : uint8_t { kLowering, kBackend };
std::string_view name_of(Fault fault);
/// Replays a failure of a device through `interpreter`, which lowers as the device's driver does.
Fault fault_of(const Failure& failure, const Device& interpreter);

/// The program with its arguments as constants and the mismatch as a comment: a .mlir file that
/// `tenon run` takes.
std::string to_mlir(const Failure& failure);

}  // namespace tenon::conformance
