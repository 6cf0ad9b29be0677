// Decides which instructions must be decomposed for a target that supports only primitive ops. Some
// ops are decomposable only in some instances: a Fourier transform of an odd length, a large
// product of complex numbers, any op on quantized types.
#pragma once

#include <memory>
#include <optional>

#include "hlo/decomposition/decomposition.h"

namespace tenon::hlo::decomposition {

/// Whether an operand or result is quantized.
bool touches_quantized(const Instruction& op);

/// Whether the op has the same meaning on the stored integers: it only moves elements, or reads
/// bits.
bool works_on_storage(const Instruction& op);

/// Whether `op` must be decomposed. An op must be decomposed before the ops in its regions: the
/// decomposition of an op with regions on quantized types stores the values that its regions take
/// and return. When no op needs decomposition any more, quantized types remain only at ops that
/// work on storage (including bitcast_convert) and at control flow, where each may be read as its
/// storage type.
///
/// The decomposition of `rng` draws from a state that its builder carries and advances.
bool needs_decomposition(const Instruction& op);

/// The CHLO function whose name the composite has ("chlo.sinh"), if it can be computed as that op:
/// it has the op's signature and no attributes but those of a ragged_dot. A frontend that keeps
/// CHLO ops as composites gives each a decomposition that is less accurate than the op's bound, so
/// devices and the evaluator use the op instead.
std::optional<OpCode> function_of_composite(const Instruction& op);

/// The ragged_dot that a composite of that name is; null if its operands or attributes are not
/// those of the op. A frontend keeps its dimensions as six lists.
std::unique_ptr<Instruction> ragged_dot_of(const Instruction& composite);

/// The decomposition of an op that needs one, or of a composite with the name of a function.
Values decompose(Builder& b, const Instruction& op);

/// A copy of `op`, which must have no regions, with expressed types for quantized operands and
/// results; `cloner` maps operands to values of those types. Only types change: the caller
/// dequantizes and quantizes the values.
std::unique_ptr<Instruction> expressed_copy(const Instruction& op, Cloner& cloner);

/// `type`, or, if it is quantized, its expressed type with the same dimensions.
Type expressed_type(const Type& type);

}  // namespace tenon::hlo::decomposition
