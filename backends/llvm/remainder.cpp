#include "backends/llvm/remainder.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <limits>

namespace tenon::codegen {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

// The remainder by one division, exact where |x / y| is less than 2^bits.
//
// The rounded quotient is at most one too large once it is truncated, since whole numbers below
// 2^53 are floats. Its product with y is exact, in f64 for f32 and by fma else, and so is what is
// left of x: a multiple of the last bit of y that is less than y in size. Where the quotient was
// too large the rest has the other sign, and one y more gives the remainder.
Value* of_small_quotient(IRBuilderBase& b, Value* x, Value* y, Value* quotient, bool is_narrow) {
  Value* const whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, quotient);
  Value* const rest = is_narrow ? b.CreateFSub(x, b.CreateFMul(whole, y))
                                : b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()},
                                                    {b.CreateFNeg(whole), y, x});
  Value* const one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* const sign = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, one, x);
  Value* const is_too_far =
      b.CreateFCmpOLT(b.CreateFMul(rest, sign), llvm::ConstantFP::get(x->getType(), 0.0));
  Value* const step = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, y, x);
  Value* const found = b.CreateSelect(is_too_far, b.CreateFAdd(rest, step), rest);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, found, x);
}

}  // namespace

Value* exact_remainder(IRBuilderBase& b, Value* x, Value* y) {
  llvm::Type* const type = x->getType();
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(type);
  const bool is_narrow = type->getScalarType()->isFloatTy();
  llvm::Type* wide = b.getDoubleTy();
  if (vector != nullptr) wide = llvm::VectorType::get(wide, vector->getElementCount());
  Value* const wide_x = b.CreateFPExt(x, wide);
  Value* const wide_y = b.CreateFPExt(y, wide);
  Value* const quotient = b.CreateFDiv(wide_x, wide_y);
  const auto below = [&](Value* number, double limit) {
    Value* const size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, number);
    return b.CreateFCmpOLT(size, llvm::ConstantFP::get(wide, limit));
  };
  Value* const is_small = b.CreateAnd(below(quotient, std::ldexp(1.0, is_narrow ? 29 : 53)),
                                      below(wide_y, std::numeric_limits<double>::infinity()));
  Value* const plain =
      b.CreateFPTrunc(of_small_quotient(b, wide_x, wide_y, quotient, is_narrow), type);

  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::Function* const function = before->getParent();
  auto* const large = llvm::BasicBlock::Create(b.getContext(), "large", function);
  auto* const after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(vector == nullptr ? is_small : b.CreateAndReduce(is_small), after, large);
  b.SetInsertPoint(large);
  Value* const called = b.CreateFRem(x, y);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode* const result = b.CreatePHI(type, 2);
  result->addIncoming(plain, before);
  result->addIncoming(called, large);
  return result;
}

}  // namespace tenon::codegen
