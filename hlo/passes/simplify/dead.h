// Dead instructions of one computation.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Erases instructions without effect and use, in regions too; true if there were any.
bool erase_dead(Computation& computation);

}  // namespace tenon::hlo
