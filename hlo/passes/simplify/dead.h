// Queries on effects, and the erasure of what has none.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Erases instructions without effect and use, in regions too; true if there were any.
bool erase_dead(Computation& computation);

/// Whether `op` gives the same results for the same operands, and does nothing else. Opaque ops and
/// ops that end or begin a computation are not pure here.
bool is_pure(const Instruction& op);

}  // namespace tenon::hlo
