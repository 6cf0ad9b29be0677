// conformance/cases/ops/: cases of single ops, a file for each category of the op table.
//
// The operands that elementwise ops take in cases.
#pragma once

#include "hlo/ops/ops.h"

namespace tenon::conformance {

/// Whether the error of the op depends on the operands, so that no bound is stated
/// (docs/numerics.md).
bool is_ill_conditioned(hlo::OpCode op, ElementType type);
/// Whether the op is defined on the type: next_after is not where a type lacks infinities or signed
/// zeros.
bool is_defined(hlo::OpCode op, ElementType type);
/// Whether the op's bound holds for all operands: not for sums of many terms, as zeta's.
bool takes_any_value(hlo::OpCode op);

}  // namespace tenon::conformance
