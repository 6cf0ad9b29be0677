// Where control flow runs: in a lane, in a workgroup, or as steps of the Program.
#pragma once

#include <optional>
#include <vector>

#include "hlo/lower/lower_op.h"

namespace tenon::hlo::lower {

enum class ControlForm : uint8_t {
  kLane,       ///< Scalars all through: control flow of a kernel, its state in registers.
  kWorkgroup,  ///< Small arrays, and long ones that are changed in small parts: one kernel of one
               ///< workgroup, its state in scratch memory and where the results lie.
  kSteps,      ///< Steps While or Conditional of the Program.
};

bool is_control(OpCode code);

/// Whether a value of this type is one number, in a workgroup's registers.
bool is_number(const Type& type);

struct WorkgroupForm {
  /// By state of a while, whether it lies where the result does, not in scratch memory.
  std::vector<bool> in_results;
};

/// How `op`, a while, if or case, is one kernel of one workgroup; nothing if it is more than that.
std::optional<WorkgroupForm> workgroup_form(const Instruction& op, const LowerLimits& limits);

/// The cheapest form that `op`, a while, if or case, fits.
ControlForm control_form(const Instruction& op, const LowerLimits& limits);

}  // namespace tenon::hlo::lower
