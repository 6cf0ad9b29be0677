// Test programs with their inputs as arguments.
//
// A test program holds its inputs as constants. Compiled as it stands, the passes fold it with the
// evaluator, and a comparison with the evaluator proves nothing. With the constants as parameters
// every op is left for the device.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct WithInputs {
  /// One entry, calls inlined; its parameters are the program's own, then its inputs.
  std::unique_ptr<hlo::Module> module;
  std::vector<Literal> inputs;  ///< The arguments of the added parameters, in order.
};

/// A copy of `module` whose entry (`entry`, or the Module's own if that is empty) takes as
/// arguments the constants that its ops use. These stay constants: what only the program's checks
/// read, sizes (operands such as dynamic_reshape's output_shape), and constants within regions.
/// Errors: those of select_entry and of inlining.
Result<WithInputs> inputs_as_arguments(const hlo::Module& module, std::string_view entry = "");

}  // namespace tenon::conformance
