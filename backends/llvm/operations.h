// backends/llvm/: code generation that the backends by LLVM share.
//
// Operations on scalars of the kernel IR as LLVM IR: what code generators for hosts and for GPUs
// share.
//
// Every function takes scalars, or vectors of one width, and gives the same. Types are those that
// an LLVM target computes with: pred, integers of 8 to 64 bits, f32 and f64; others are legalised
// away before.
//
// Thread-safety: that of the LLVMContext that the builder belongs to.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <span>

#include "core/kernel/ir/kernel.h"

namespace tenon::codegen {

/// i1 of pred, iN, float, double.
llvm::Type* type_of(llvm::LLVMContext& context, ElementType type);
/// The same but i8 of pred, which takes a byte.
llvm::Type* memory_type_of(llvm::LLVMContext& context, ElementType type);
/// A number from its bits as a kernel holds them.
llvm::Constant* constant(llvm::LLVMContext& context, ElementType type, uint64_t bits);

/// An operation of ops.inc that is no math function (those are expanded before). `from` is the
/// type of the last operand; `fits` promises that an integer result does not wrap around.
llvm::Value* operation(llvm::IRBuilderBase& builder, const kernel::Node& node, ElementType from,
                       std::span<llvm::Value* const> operands, bool fits);

/// The combination of two numbers of a type, as `operation` gives it.
llvm::Value* combination(llvm::IRBuilderBase& builder, kernel::OpCode code, ElementType type,
                         llvm::Value* x, llvm::Value* y);

/// The identity element of `code`, exact in every bit, for any number of the type; null if there is
/// none.
llvm::Constant* identity_of(llvm::LLVMContext& context, kernel::OpCode code, ElementType type);

/// The identity element of a reduction's combination, if that is a single operation with a known
/// identity; else null.
llvm::Constant* identity_of(llvm::LLVMContext& context, const kernel::Kernel& kernel,
                            const kernel::Node& reduction);

/// LLVM's atomicrmw operation for an atomic on an integer type.
llvm::AtomicRMWInst::BinOp atomic_operation(kernel::AtomicKind kind, ElementType type);

}  // namespace tenon::codegen
