// Test programs with their inputs as arguments.
//
// A test program contains its inputs as constants. If it were compiled unchanged, the passes would
// fold it with the evaluator, and a comparison with the evaluator would prove nothing. With the
// constants as parameters, the device must run every op.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct WithInputs {
  /// One entry with inlined calls; its parameters are the program's own, followed by its inputs.
  std::unique_ptr<hlo::Module> module;
  std::vector<Literal> inputs;  ///< The arguments of the added parameters, in order.
};

/// A copy of `module` whose entry (`entry`, or the Module's own if that is empty) takes the
/// constants that its ops use as arguments. The following stay constants: values that only the
/// program's checks read, sizes (operands such as dynamic_reshape's output_shape), and constants
/// within regions. Errors: those of select_entry and of inlining.
Result<WithInputs> inputs_as_arguments(const hlo::Module& module, std::string_view entry = "");

}  // namespace tenon::conformance
