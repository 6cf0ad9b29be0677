// hlo/verify/: the verifier of Modules.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Checks the constraints of the op table: numbers of operands and results, element types, presence
/// and kinds of attributes, number of regions.
Status verify_structure(const Instruction& op);

/// Runs verify_structure, then the shape rule; the inferred types must be compatible with the
/// stated ones.
Status verify(const Instruction& op);

/// Result types inferred by the op's shape rule, after verify_structure.
Result<std::vector<Type>> infer_types(const Instruction& op);

/// Verifies every instruction of every function, returned types against declared ones, and that
/// values are defined before use. Returns the first error, with its position.
Status verify(const Module& module);
/// All errors, at most `limit`.
std::vector<Status> verify_all(const Module& module, size_t limit = 20);

/// Drops attributes that equal their defaults: the canonical form.
void canonicalize_attributes(Instruction& op);

}  // namespace tenon::hlo
