#include "backends/gpu/codegen/remainder.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <string>

namespace tenon::gpu {
namespace {

using llvm::BasicBlock;
using llvm::Value;

// A number is significand * 2^exponent, both integers; the significand of a normal number includes
// its leading bit. The remainder of the significands is computed repeatedly, each time for as many
// bits as fit, until the greater exponent equals the smaller one.
class RemainderFunction {
 public:
  RemainderFunction(llvm::Function* function, llvm::Type* type)
      : b_(function->getContext()),
        function_(function),
        type_(type),
        width_(type->getScalarSizeInBits()),
        fraction_bits_(static_cast<unsigned>(type->getFPMantissaWidth()) - 1),
        integer_(b_.getIntNTy(width_)) {}

  void emit() {
    b_.SetInsertPoint(block("entry"));
    Value* const x_bits = b_.CreateBitCast(function_->getArg(0), integer_);
    Value* const y_bits = b_.CreateBitCast(function_->getArg(1), integer_);
    Value* const sign = b_.CreateAnd(x_bits, llvm::APInt::getSignMask(width_));
    Value* const x = b_.CreateAnd(x_bits, llvm::APInt::getSignedMaxValue(width_));
    Value* const y = b_.CreateAnd(y_bits, llvm::APInt::getSignedMaxValue(width_));
    const llvm::APInt infinity = llvm::APFloat::getInf(type_->getFltSemantics()).bitcastToAPInt();
    Value* const inf = b_.getInt(infinity);
    Value* const none =
        b_.CreateOr(b_.CreateICmpEQ(y, llvm::ConstantInt::get(integer_, 0)),
                    b_.CreateOr(b_.CreateICmpUGE(x, inf), b_.CreateICmpUGT(y, inf)));
    BasicBlock* const nan = block("nan");
    BasicBlock* const number = block("number");
    BasicBlock* const less = block("less");
    BasicBlock* const reduce = block("reduce");
    b_.CreateCondBr(none, nan, number);
    b_.SetInsertPoint(nan);
    b_.CreateRet(llvm::ConstantFP::getNaN(type_));
    b_.SetInsertPoint(number);
    b_.CreateCondBr(b_.CreateICmpULT(x, y), less, reduce);
    b_.SetInsertPoint(less);
    b_.CreateRet(function_->getArg(0));
    b_.SetInsertPoint(reduce);
    Value* const rest = reduced(x, y);
    b_.CreateRet(b_.CreateBitCast(b_.CreateOr(assembled(rest, exponent(y)), sign), type_));
  }

 private:
  BasicBlock* block(const char* name) {
    return BasicBlock::Create(b_.getContext(), name, function_);
  }
  Value* integer(uint64_t value) { return llvm::ConstantInt::get(integer_, value); }

  Value* exponent(Value* bits) {
    Value* const field = b_.CreateLShr(bits, integer(fraction_bits_));
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, field, integer(1));
  }
  Value* significand(Value* bits) {
    const uint64_t leading = uint64_t{1} << fraction_bits_;
    Value* const fraction = b_.CreateAnd(bits, integer(leading - 1));
    Value* const normal = b_.CreateICmpUGE(bits, integer(leading));
    return b_.CreateOr(fraction, b_.CreateSelect(normal, integer(leading), integer(0)));
  }

  // The significand of x modulo that of y, at the exponent of y, which is not above that of x.
  Value* reduced(Value* x, Value* y) {
    Value* const divisor = significand(y);
    Value* const first = b_.CreateURem(significand(x), divisor);
    Value* const steps = b_.CreateSub(exponent(x), exponent(y));
    BasicBlock* const before = b_.GetInsertBlock();
    BasicBlock* const turn = block("turn");
    BasicBlock* const after = block("after");
    b_.CreateCondBr(b_.CreateICmpEQ(steps, integer(0)), after, turn);
    b_.SetInsertPoint(turn);
    llvm::PHINode* const rest = b_.CreatePHI(integer_, 2);
    llvm::PHINode* const left = b_.CreatePHI(integer_, 2);
    Value* const now =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, integer(width_ - 1 - fraction_bits_));
    Value* const next = b_.CreateURem(b_.CreateShl(rest, now), divisor);
    Value* const still = b_.CreateSub(left, now);
    rest->addIncoming(first, before);
    rest->addIncoming(next, turn);
    left->addIncoming(steps, before);
    left->addIncoming(still, turn);
    b_.CreateCondBr(b_.CreateICmpEQ(still, integer(0)), after, turn);
    b_.SetInsertPoint(after);
    llvm::PHINode* const result = b_.CreatePHI(integer_, 2);
    result->addIncoming(first, before);
    result->addIncoming(next, turn);
    return result;
  }

  // The bits of significand * 2^exponent: shifted left as far as its leading bit and the least
  // exponent allow. Because the leading bit is added to it, the exponent field is one too great.
  Value* assembled(Value* rest, Value* exponent) {
    Value* const zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, rest, b_.getFalse());
    Value* const room = b_.CreateSub(zeros, integer(width_ - 1 - fraction_bits_));
    Value* const shift =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, room, b_.CreateSub(exponent, integer(1)));
    Value* const field = b_.CreateSub(b_.CreateSub(exponent, integer(1)), shift);
    Value* const bits =
        b_.CreateAdd(b_.CreateShl(rest, shift), b_.CreateShl(field, integer(fraction_bits_)));
    return b_.CreateSelect(b_.CreateICmpEQ(rest, integer(0)), integer(0), bits);
  }

  llvm::IRBuilder<> b_;
  llvm::Function* const function_;
  llvm::Type* const type_;
  const unsigned width_;
  const unsigned fraction_bits_;
  llvm::IntegerType* const integer_;
};

}  // namespace

llvm::Function* remainder_function(llvm::Module& module, llvm::Type* type) {
  const std::string name = "tenon_rem_f" + std::to_string(type->getScalarSizeInBits());
  if (llvm::Function* const known = module.getFunction(name)) return known;
  llvm::Function* const function =
      llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                             llvm::Function::InternalLinkage, name, module);
  function->setDoesNotThrow();
  RemainderFunction(function, type).emit();
  return function;
}

}  // namespace tenon::gpu
