// The interface of custom calls (core/program/foreign_call.h), from the ops.
#pragma once

#include <string_view>

#include "core/program/foreign_call.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// Discardable attributes of a custom call whose arrays the pass `call-layouts` has brought into
/// the order of memory: the orders of dimensions that the function sees, as in operand_layouts.
inline constexpr std::string_view kOperandLayouts = "tenon.operand_layouts";
inline constexpr std::string_view kResultLayouts = "tenon.result_layouts";

/// The attributes of a typed call: its backend_config, or mhlo.backend_config, where JAX has them;
/// null if it has none.
const Dict* attributes_of_call(const Instruction& op);

/// Attributes are those of a typed call. Errors: layouts that are not row-major, which the pass
/// must have replaced.
Result<program::ForeignCall> foreign_call_of(const Instruction& op);

}  // namespace tenon::hlo::lower
