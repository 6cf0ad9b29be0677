// Dead instructions of one computation.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Erases what has no effect and no use, in regions too; true if there was any.
bool erase_dead(Computation& computation);

}  // namespace tenon::hlo
