// Loops of LLVM IR, and vectors in them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

namespace tenon::codegen {

using LlvmValues = std::vector<llvm::Value*>;

/// Emits a loop at the builder's position, with i = low, low + step … below `high`, all of one
/// integer type; no step may overflow. body(i, carried) returns the next carried values. Returns
/// the values carried at the end. Afterwards the builder is positioned after the loop. `unrolled`
/// requests full unrolling, which is possible if the bounds are constants.
LlvmValues emit_loop(llvm::IRBuilderBase& builder, llvm::Value* low, llvm::Value* high,
                     int64_t step, const LlvmValues& inits,
                     const std::function<LlvmValues(llvm::Value* i, const LlvmValues&)>& body,
                     bool unrolled = false);

/// Emits a loop with carried values that continues while condition(carried) holds; body() returns
/// the next values. Returns the values of the last test.
LlvmValues emit_while(llvm::IRBuilderBase& builder, const LlvmValues& inits,
                      const std::function<llvm::Value*(const LlvmValues&)>& condition,
                      const std::function<LlvmValues()>& body);

/// Emits a branch to side(0) if `condition` holds, else to side(1); neither side may end its block.
/// Returns the values of the side that was taken.
LlvmValues emit_if(llvm::IRBuilderBase& builder, llvm::Value* condition,
                   const std::function<LlvmValues(size_t)>& side);
/// The same for sides without values.
void emit_branch(llvm::IRBuilderBase& builder, llvm::Value* condition,
                 const std::function<void()>& then, const std::function<void()>& otherwise);

/// Emits body() for the case that `condition` holds; returns its values, else `otherwise`.
LlvmValues emit_where(llvm::IRBuilderBase& builder, llvm::Value* condition,
                      const LlvmValues& otherwise, const std::function<LlvmValues()>& body);

/// A 64-bit constant.
inline llvm::Value* number(llvm::IRBuilderBase& builder, int64_t value) {
  return builder.getInt64(static_cast<uint64_t>(value));
}

/// Transposes a square: as many vectors as each has lanes, a power of two.
void transpose(llvm::IRBuilderBase& builder, LlvmValues& rows);

}  // namespace tenon::codegen
