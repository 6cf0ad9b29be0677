// The instructions that must be decomposed for a target that knows primitive ops only. Some ops are
// decomposable only in some instances: a Fourier transform of an odd length, any op on quantized
// types.
#pragma once

#include <optional>

#include "hlo/decomposition/decomposition.h"

namespace tenon::hlo::decomposition {

/// Whether an operand or result is quantized.
bool touches_quantized(const Instruction& op);

/// Whether the op means the same on the stored integers: it only moves elements, or reads bits.
bool works_on_storage(const Instruction& op);

/// Whether `op` must be decomposed, before any op in its regions: the decomposition of an op with
/// regions on quantized types stores the values that its regions take and return. Once no op needs
/// it, quantized types are left only at ops that work on storage (bitcast_convert among them) and
/// at control flow: each may be read as its storage type.
///
/// The decomposition of `rng` draws from a state that its builder carries and advances.
bool needs_decomposition(const Instruction& op);

/// The CHLO function that a composite is called after ("chlo.sinh"), if it can be computed as that
/// op: it has the op's signature and no attributes. A frontend that keeps CHLO ops as composites
/// gives each a decomposition that is less accurate than the op's bound; devices and the evaluator
/// take the op instead.
std::optional<OpCode> function_of_composite(const Instruction& op);

/// The decomposition of an op that needs one, or of a composite that is called after a function.
Values decompose(Builder& b, const Instruction& op);

/// A copy of `op`, which has no regions, whose operands and results have expressed types where they
/// were quantized; `cloner` maps operands to values of those types. Types alone change: the numbers
/// are the caller's to dequantize and quantize.
std::unique_ptr<Instruction> expressed_copy(const Instruction& op, Cloner& cloner);

/// `type`, or the same dimensions of its expressed type if it is quantized.
Type expressed_type(const Type& type);

}  // namespace tenon::hlo::decomposition
