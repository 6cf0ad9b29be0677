// Where control flow runs: in a lane, in a workgroup, or as steps of the Program.
#pragma once

#include <optional>
#include <vector>

#include "hlo/lower/lower_op.h"

namespace tenon::hlo::lower {

enum class ControlForm : uint8_t {
  kLane,  ///< Only scalars: control flow of a kernel, with its state in registers.
  /// Small arrays, and long ones of which small parts change: one kernel of one workgroup, with its
  /// state in scratch memory and in the memory of the results.
  kWorkgroup,
  kSteps,  ///< While or Conditional steps of the Program.
};

bool is_control(OpCode code);

/// Whether a value of this type is one number, which a workgroup keeps in registers.
bool is_number(const Type& type);

struct WorkgroupForm {
  /// For each element of a while's state, whether it uses the memory of the result, not scratch
  /// memory.
  std::vector<bool> in_results;
};

/// How `op`, a while, if or case, becomes one kernel of one workgroup; nothing if it cannot.
std::optional<WorkgroupForm> workgroup_form(const Instruction& op, const LowerLimits& limits);

/// The cheapest form into which `op`, a while, if or case, fits.
ControlForm control_form(const Instruction& op, const LowerLimits& limits);

}  // namespace tenon::hlo::lower
