// Math functions as LLVM IR: the shared expansions (core/kernel/math), with their bits.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "core/kernel/ir/ops.h"

namespace tenon::codegen {

/// The features of the target that math functions use.
struct MathTarget {
  bool avx512 = false;  ///< vscalef.
};

/// exp and the other math functions on f32 or f64, scalars or vectors; `y` is null unless the
/// function has two arguments. If a function branches, the builder is afterwards in another block.
llvm::Value* math_function(llvm::IRBuilderBase& builder, kernel::OpCode code, ElementType type,
                           llvm::Value* x, llvm::Value* y, const MathTarget& target);

}  // namespace tenon::codegen
