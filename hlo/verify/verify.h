// hlo/verify/: the verifier of Modules.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Checks the constraints of the op table: number of operands and results, element types, presence
/// and kinds of attributes, number of regions.
Status verify_structure(const Instruction& op);

/// verify_structure, then the shape rule; the types it gives must be compatible with the stated
/// ones.
Status verify(const Instruction& op);

/// Result types by the op's shape rule, after verify_structure.
Result<std::vector<Type>> infer_types(const Instruction& op);

/// Verifies every instruction of every function, returns against declared results, and that values
/// are defined before use. Gives the first error, with its position.
Status verify(const Module& module);
/// All errors, at most `limit`.
std::vector<Status> verify_all(const Module& module, size_t limit = 20);

/// Drops attributes that equal their defaults: the canonical form.
void canonicalize_attributes(Instruction& op);

}  // namespace tenon::hlo
