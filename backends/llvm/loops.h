// Loops of LLVM IR, and vectors in them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

namespace tenon::codegen {

using LlvmValues = std::vector<llvm::Value*>;

/// A loop in the function that the builder stands in, with i = low, low + step … below `high`, all
/// of one integer type, which no step leaves; body(i, carried) gives the next carried values. What
/// is carried at the end is the result. The builder then stands behind the loop. With `unrolled`
/// passes are told to leave no loop, which they can do where its bounds are constants.
LlvmValues emit_loop(llvm::IRBuilderBase& builder, llvm::Value* low, llvm::Value* high,
                     int64_t step, const LlvmValues& inits,
                     const std::function<LlvmValues(llvm::Value* i, const LlvmValues&)>& body,
                     bool unrolled = false);

/// Does one or the other, of which neither ends its block; the builder then stands behind both.
void emit_branch(llvm::IRBuilderBase& builder, llvm::Value* condition,
                 const std::function<void()>& then, const std::function<void()>& otherwise);

/// A number of 64 bits.
inline llvm::Value* number(llvm::IRBuilderBase& builder, int64_t value) {
  return builder.getInt64(static_cast<uint64_t>(value));
}

/// As many vectors as each has lanes, a power of two: rows become columns.
void transpose(llvm::IRBuilderBase& builder, LlvmValues& rows);

}  // namespace tenon::codegen
