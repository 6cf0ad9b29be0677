// The exact remainder of floats in vectors: x86 and its kin have no instruction for it, and a call
// of the C library takes one element at a time.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace tenon::codegen {

/// x rem y with the sign of x, exact as C's fmod: of f32, or of f64 on a target whose fma is an
/// instruction; scalars or vectors of one type. The builder is afterwards in another block.
/// Quotients of 2^29 and more (f64: 2^53), and what is no number, take the call: then all lanes do.
llvm::Value* exact_remainder(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

}  // namespace tenon::codegen
