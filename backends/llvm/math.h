// Math functions as LLVM IR: the shared expansions (core/kernel/math), so their bits.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "core/kernel/ir/ops.h"

namespace tenon::codegen {

/// What the target of the code has.
struct MathTarget {
  bool avx512 = false;  ///< vscalef.
};

/// exp and the rest of f32 or f64, of scalars or vectors; `y` is null but of functions of two
/// arguments. Leaves the builder in another block where a function branches.
llvm::Value* math_function(llvm::IRBuilderBase& builder, kernel::OpCode code, ElementType type,
                           llvm::Value* x, llvm::Value* y, const MathTarget& target);

}  // namespace tenon::codegen
