#include "backends/llvm/math.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/llvm/operations.h"
#include "core/kernel/math/by_op.h"
#include "core/kernel/math/emitted.h"
#include "core/kernel/math/scalar.h"

namespace tenon::codegen {
namespace {

using kernel::OpCode;
using llvm::Value;

/// The builder for emitted.h; its values are scalars or vectors as `like` is.
class LlvmMathBuilder {
 public:
  /// A value with its type, because LLVM's integer types have no sign.
  struct Id {
    Value* value = nullptr;
    ElementType type{};
    bool operator==(const Id&) const = default;
  };

  LlvmMathBuilder(llvm::IRBuilderBase& builder, const Value* like, const MathTarget& target)
      : b_(builder), target_(target) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
    lanes_ = vector == nullptr ? 0 : vector->getNumElements();
  }

  Id unary(OpCode code, Id x) { return apply(code, x.type, {x.value}, x.type); }
  Id binary(OpCode code, Id x, Id y) {
    return apply(code, x.type, {x.value, y.value},
                 kernel::is_comparison(code) ? ElementType::kPred : x.type);
  }
  Id fma(Id x, Id y, Id z) {
    return apply(OpCode::kFma, x.type, {x.value, y.value, z.value}, x.type);
  }
  Id select(Id condition, Id x, Id y) {
    return {b_.CreateSelect(condition.value, x.value, y.value), x.type};
  }
  Id convert(Id x, ElementType to) { return apply(OpCode::kConvert, x.type, {x.value}, to); }
  Id bitcast(Id x, ElementType to) { return apply(OpCode::kBitcast, x.type, {x.value}, to); }
  Id real(ElementType type, double value) {
    return of_bits(type, kernel::bits_of_real(type, value));
  }
  Id integer(ElementType type, int64_t value) {
    return of_bits(type, static_cast<uint64_t>(value));
  }

  /// `then` if `condition` holds, else `otherwise`. A rare `then` is skipped if no lane needs it.
  template <class Then, class Otherwise>
  std::vector<Id> if_else(Id condition, const Then& then, const Otherwise& otherwise) {
    const std::vector<Id> plain = otherwise();
    llvm::BasicBlock* const before = b_.GetInsertBlock();
    llvm::Function* const function = before->getParent();
    auto* const some = llvm::BasicBlock::Create(b_.getContext(), "some", function);
    auto* const after = llvm::BasicBlock::Create(b_.getContext(), "after", function);
    Value* const any = lanes_ == 0 ? condition.value : b_.CreateOrReduce(condition.value);
    b_.CreateCondBr(any, some, after);
    b_.SetInsertPoint(some);
    const std::vector<Id> special = then();
    std::vector<Id> results;
    for (size_t i = 0; i < plain.size(); ++i)
      results.push_back(select(condition, special[i], plain[i]));
    llvm::BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (size_t i = 0; i < plain.size(); ++i) {
      llvm::PHINode* const phi = b_.CreatePHI(plain[i].value->getType(), 2);
      phi->addIncoming(plain[i].value, before);
      phi->addIncoming(results[i].value, end);
      results[i].value = phi;
    }
    return results;
  }

  /// By vscalef, one register at a time.
  Id scale(Id x, Id n) {
    const bool narrow = x.type == ElementType::kF32;
    const unsigned whole = narrow ? 16 : 8;
    if (!target_.avx512 || lanes_ == 0 || lanes_ % whole != 0) return {};
    const auto id = narrow ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                           : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
    Value* const exponent = b_.CreateSIToFP(n.value, x.value->getType());
    auto* const part = llvm::FixedVectorType::get(x.value->getType()->getScalarType(), whole);
    Value* const all = llvm::Constant::getAllOnesValue(b_.getIntNTy(whole));
    Value* result = llvm::PoisonValue::get(x.value->getType());
    for (unsigned at = 0; at < lanes_; at += whole) {
      Value* const place = b_.getInt64(at);
      Value* const from = b_.CreateExtractVector(part, x.value, place);
      Value* const by = b_.CreateExtractVector(part, exponent, place);
      constexpr uint32_t kCurrentRounding = 4;
      Value* const scaled =
          b_.CreateIntrinsic(id, {}, {from, by, from, all, b_.getInt32(kCurrentRounding)});
      result = b_.CreateInsertVector(x.value->getType(), result, scaled, place);
    }
    return {result, x.type};
  }

 private:
  Id of_bits(ElementType type, uint64_t bits) {
    llvm::Constant* const scalar = constant(b_.getContext(), type, bits);
    if (lanes_ == 0) return {scalar, type};
    return {llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes_), scalar), type};
  }
  Id apply(OpCode code, ElementType from, std::initializer_list<Value*> operands, ElementType to) {
    kernel::Node node;
    node.op = code;
    node.type = to;
    node.from = from;
    const std::span<Value* const> list(operands.begin(), operands.size());
    return {operation(b_, node, from, list, false), to};
  }

  llvm::IRBuilderBase& b_;
  const MathTarget target_;
  unsigned lanes_ = 0;
};

}  // namespace

Value* math_function(llvm::IRBuilderBase& builder, OpCode code, ElementType type, Value* x,
                     Value* y, const MathTarget& target) {
  LlvmMathBuilder writer(builder, x, target);
  const auto on = [&](auto format) {
    using R = kernel::math::Emitted<decltype(format), LlvmMathBuilder>;
    return kernel::math::apply(code, R{{&writer, {x, type}}}, R{{&writer, {y, type}}}).id.value;
  };
  return type == ElementType::kF64 ? on(double{}) : on(float{});
}

}  // namespace tenon::codegen
