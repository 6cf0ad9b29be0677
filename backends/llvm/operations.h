// backends/llvm/: code generation that the backends by LLVM share.
//
// Scalar operations of the kernel IR as LLVM IR, for code generators for hosts and for GPUs.
//
// Every function takes scalars, or vectors of one width, and returns the same. Types are those in
// which an LLVM target computes: pred, integers of 8 to 64 bits, f32 and f64, and f16 and bf16 in
// conversions to and from f32; other types must be legalised first.
//
// Thread-safety: that of the builder's LLVMContext.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <span>

#include "core/kernel/ir/kernel.h"

namespace tenon::codegen {

/// i1 for pred, iN, half, float, double; bf16, which is converted alone, is i16.
llvm::Type* type_of(llvm::LLVMContext& context, ElementType type);
/// The same except i8 for pred, which takes a byte.
llvm::Type* memory_type_of(llvm::LLVMContext& context, ElementType type);
/// A number from its bits in a kernel.
llvm::Constant* constant(llvm::LLVMContext& context, ElementType type, uint64_t bits);

/// The f32 of a bf16, whose pattern is given in i16.
llvm::Value* from_bf16(llvm::IRBuilderBase& builder, llvm::Value* x);
/// f32 as the pattern of a bf16, in i16: rounds to nearest, ties to even; a NaN becomes a quiet
/// NaN.
llvm::Value* to_bf16(llvm::IRBuilderBase& builder, llvm::Value* x);

/// An operation of ops.inc other than a math function (those are expanded separately). `from` is
/// the type of the last operand; `fits` promises that an integer result does not wrap around.
llvm::Value* operation(llvm::IRBuilderBase& builder, const kernel::Node& node, ElementType from,
                       std::span<llvm::Value* const> operands, bool fits);

/// The combination of two numbers of a type, as `operation` computes it.
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
