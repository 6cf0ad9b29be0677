#include "backends/llvm/operations.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <cmath>

#include "core/kernel/math/scalar.h"
#include "core/types/float_convert.h"

namespace tenon::codegen {
namespace {

using kernel::OpCode;
using llvm::IRBuilderBase;
using llvm::Value;
using llvm::Intrinsic::ID;

Value* number_like(const Value* like, uint64_t number) {
  return llvm::ConstantInt::get(like->getType(), number);
}

// Whether the value is a constant other than 0 and -1.
bool divides_plainly(const Value* divisor) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(divisor);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return number != nullptr && !number->isZero() && !number->isMinusOne();
}

// Processors divide no vectors of integers, but vectors of floats. Of floats with more bits than
// the integers the quotient is exact once it is truncated: what rounding changes is less than x /
// 2^bits of 1 / y, and the quotient is at least 1 / y from the next whole number, unless it is one.
// `y` is not 0, and not -1 if numbers have a sign.
Value* divided_in_floats(IRBuilderBase& b, bool quotient, bool is_signed, Value* x, Value* y) {
  auto* const type = llvm::cast<llvm::VectorType>(x->getType());
  llvm::Type* const real = type->getScalarSizeInBits() > 16 ? b.getDoubleTy() : b.getFloatTy();
  auto* const reals = llvm::VectorType::get(real, type->getElementCount());
  const auto wide = [&](Value* v) {
    return is_signed ? b.CreateSIToFP(v, reals) : b.CreateUIToFP(v, reals);
  };
  Value* const exact = b.CreateFDiv(wide(x), wide(y));
  Value* const whole = is_signed ? b.CreateFPToSI(exact, type) : b.CreateFPToUI(exact, type);
  return quotient ? whole : b.CreateSub(x, b.CreateMul(whole, y));
}

// x / 0 is all ones and x rem 0 is x; least / -1 is least and least rem -1 is 0. In these cases the
// divisor is replaced by 1, which gives the right result for the last two except for the sign.
Value* division(IRBuilderBase& b, OpCode code, bool is_signed, Value* x, Value* y) {
  const bool quotient = code == OpCode::kDiv;
  const auto divide = [&](Value* by) {
    if (quotient) return is_signed ? b.CreateSDiv(x, by) : b.CreateUDiv(x, by);
    return is_signed ? b.CreateSRem(x, by) : b.CreateURem(x, by);
  };
  if (divides_plainly(y)) return divide(y);
  Value* const ones = llvm::Constant::getAllOnesValue(x->getType());
  Value* const zero = number_like(x, 0);
  Value* const by_zero = b.CreateICmpEQ(y, zero);
  Value* special = by_zero;
  Value* by_minus_one = nullptr;
  if (is_signed) {
    by_minus_one = b.CreateICmpEQ(y, ones);
    special = b.CreateOr(by_zero, by_minus_one);
  }
  Value* const by = b.CreateSelect(special, number_like(y, 1), y);
  const bool in_floats = x->getType()->isVectorTy() && x->getType()->getScalarSizeInBits() <= 32;
  Value* result = in_floats ? divided_in_floats(b, quotient, is_signed, x, by) : divide(by);
  if (is_signed) result = b.CreateSelect(by_minus_one, quotient ? b.CreateNeg(x) : zero, result);
  return b.CreateSelect(by_zero, quotient ? ones : x, result);
}

Value* shift(IRBuilderBase& b, OpCode code, int width, Value* x, Value* amount) {
  Value* const inside = b.CreateICmpULT(amount, number_like(amount, static_cast<uint64_t>(width)));
  if (code == OpCode::kSar) {
    Value* const most = number_like(amount, static_cast<uint64_t>(width - 1));
    return b.CreateAShr(x, b.CreateSelect(inside, amount, most));
  }
  Value* const some = b.CreateSelect(inside, amount, number_like(amount, 0));
  Value* const shifted = code == OpCode::kShl ? b.CreateShl(x, some) : b.CreateLShr(x, some);
  return b.CreateSelect(inside, shifted, number_like(x, 0));
}

Value* high_product(IRBuilderBase& b, bool is_signed, int width, Value* x, Value* y) {
  llvm::Type* const narrow = x->getType();
  llvm::Type* const wide = narrow->getExtendedType();
  const auto widen = [&](Value* v) {
    return is_signed ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
  };
  Value* const product = b.CreateMul(widen(x), widen(y));
  return b.CreateTrunc(b.CreateLShr(product, static_cast<uint64_t>(width)), narrow);
}

Value* on_integers(IRBuilderBase& b, OpCode code, ElementType type, std::span<Value* const> x,
                   bool fits) {
  const bool is_signed = is_signed_integer(type);
  const bool no_wrap = fits && is_signed;
  switch (code) {
    case OpCode::kAdd:
      return b.CreateAdd(x[0], x[1], "", false, no_wrap);
    case OpCode::kSub:
      return b.CreateSub(x[0], x[1], "", false, no_wrap);
    case OpCode::kMul:
      return b.CreateMul(x[0], x[1], "", false, no_wrap);
    case OpCode::kMulHi:
      return high_product(b, is_signed, bit_width(type), x[0], x[1]);
    case OpCode::kDiv:
    case OpCode::kRem:
      return division(b, code, is_signed, x[0], x[1]);
    case OpCode::kMin:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin,
                                     x[0], x[1]);
    case OpCode::kMax:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax,
                                     x[0], x[1]);
    case OpCode::kNeg:
      return b.CreateNeg(x[0]);
    case OpCode::kAbs:
      return is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x[0], b.getFalse()) : x[0];
    case OpCode::kAnd:
      return b.CreateAnd(x[0], x[1]);
    case OpCode::kOr:
      return b.CreateOr(x[0], x[1]);
    case OpCode::kXor:
      return b.CreateXor(x[0], x[1]);
    case OpCode::kNot:
      return b.CreateNot(x[0]);
    case OpCode::kRotl:
      return b.CreateIntrinsic(llvm::Intrinsic::fshl, {x[0]->getType()}, {x[0], x[0], x[1]});
    case OpCode::kClz:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x[0], b.getFalse());
    case OpCode::kPopcount:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x[0]);
    default:
      return shift(b, code, bit_width(type), x[0], x[1]);
  }
}

ID rounding(OpCode code) {
  switch (code) {
    case OpCode::kAbs:
      return llvm::Intrinsic::fabs;
    case OpCode::kSqrt:
      return llvm::Intrinsic::sqrt;
    case OpCode::kFloor:
      return llvm::Intrinsic::floor;
    case OpCode::kCeil:
      return llvm::Intrinsic::ceil;
    case OpCode::kTrunc:
      return llvm::Intrinsic::trunc;
    case OpCode::kRoundEven:
      return llvm::Intrinsic::roundeven;
    default:
      return llvm::Intrinsic::round;
  }
}

// LLVM would compare halves, and compute the lesser of two, in halves, which processors of x86
// mostly lack: its version 19 loses NaNs there (of NaN and -0 the lesser is -0), and uses no
// vectors. A fence hides that a float was a half.
Value* fenced(IRBuilderBase& b, Value* x) {
  const auto* widened = llvm::dyn_cast<llvm::FPExtInst>(x);
  if (widened == nullptr || !widened->getSrcTy()->getScalarType()->isHalfTy()) return x;
  if (!llvm::Triple(b.GetInsertBlock()->getModule()->getTargetTriple()).isX86()) return x;
  return b.CreateArithmeticFence(x, x->getType());
}

Value* on_floats(IRBuilderBase& b, OpCode code, std::span<Value* const> x) {
  switch (code) {
    case OpCode::kAdd:
      return b.CreateFAdd(x[0], x[1]);
    case OpCode::kSub:
      return b.CreateFSub(x[0], x[1]);
    case OpCode::kMul:
      return b.CreateFMul(x[0], x[1]);
    case OpCode::kDiv:
      return b.CreateFDiv(x[0], x[1]);
    case OpCode::kRem:
      return b.CreateFRem(x[0], x[1]);
    case OpCode::kMin:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, fenced(b, x[0]), fenced(b, x[1]));
    case OpCode::kMax:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, fenced(b, x[0]), fenced(b, x[1]));
    case OpCode::kNeg:
      return b.CreateFNeg(x[0]);
    case OpCode::kFma:
      return b.CreateIntrinsic(llvm::Intrinsic::fma, {x[0]->getType()}, {x[0], x[1], x[2]});
    default:
      return b.CreateUnaryIntrinsic(rounding(code), x[0]);
  }
}

Value* comparison(IRBuilderBase& b, OpCode code, ElementType type, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  const bool real = is_float(type);
  const bool is_signed = is_signed_integer(type);
  const auto pick = [&](P on_floats, P on_signed, P on_unsigned) {
    if (real) return on_floats;
    return is_signed ? on_signed : on_unsigned;
  };
  const auto predicate = [&] {
    switch (code) {
      case OpCode::kEq:
        return pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
      case OpCode::kNe:
        return pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
      case OpCode::kLt:
        return pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
      case OpCode::kLe:
        return pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
      case OpCode::kGt:
        return pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
      default:
        return pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    }
  };
  return real ? b.CreateCmp(predicate(), fenced(b, x), fenced(b, y))
              : b.CreateCmp(predicate(), x, y);
}

llvm::Type* like(const Value* value, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(value->getType());
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

// Rounds toward zero and saturates; NaN gives 0. LLVM's own saturating conversion splits vectors. A
// plain conversion gives poison for a value out of range; freeze turns it into some number, and a
// select replaces that number.
Value* truncation(IRBuilderBase& b, ElementType to, Value* x) {
  const bool is_signed = is_signed_integer(to);
  if (bit_width(to) < 32) {
    const ElementType wide = is_signed ? ElementType::kS32 : ElementType::kU32;
    Value* const number = truncation(b, wide, x);
    Value* const least = number_like(number, static_cast<uint64_t>(integer_min(to)));
    Value* const most = number_like(number, static_cast<uint64_t>(integer_max(to)));
    Value* const bounded =
        is_signed ? b.CreateBinaryIntrinsic(
                        llvm::Intrinsic::smax,
                        b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, number, most), least)
                  : b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, number, most);
    return b.CreateTrunc(bounded, like(x, type_of(b.getContext(), to)));
  }
  llvm::Type* const type = like(x, type_of(b.getContext(), to));
  const int bits = bit_width(to) - (is_signed ? 1 : 0);
  const double above = std::ldexp(1.0, bits);
  const auto real = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  const auto integer = [&](int64_t value) { return llvm::ConstantInt::getSigned(type, value); };
  Value* number = b.CreateFreeze(is_signed ? b.CreateFPToSI(x, type) : b.CreateFPToUI(x, type));
  number = b.CreateSelect(b.CreateFCmpOGE(x, real(above)), integer(integer_max(to)), number);
  // False for NaN.
  Value* const low = is_signed ? b.CreateFCmpOGE(x, real(-above)) : b.CreateFCmpOGT(x, real(0));
  number = b.CreateSelect(low, number, integer(integer_min(to)));
  if (!is_signed) return number;
  return b.CreateSelect(b.CreateFCmpUNO(x, x), integer(0), number);
}

Value* conversion(IRBuilderBase& b, ElementType from, ElementType to, Value* x) {
  llvm::Type* const type = like(x, type_of(b.getContext(), to));
  if (from == to) return x;
  if (from == ElementType::kBF16) return from_bf16(b, x);
  if (to == ElementType::kBF16) return to_bf16(b, x);
  if (is_pred(to)) {
    if (is_float(from)) {
      return b.CreateFCmpUNE(fenced(b, x), llvm::ConstantFP::getZero(x->getType()));
    }
    return b.CreateICmpNE(x, number_like(x, 0));
  }
  if (is_float(from) && is_float(to)) return b.CreateFPCast(x, type);
  if (is_float(from)) return truncation(b, to, x);
  if (is_float(to)) {
    return is_signed_integer(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  }
  return is_signed_integer(from) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

}  // namespace

Value* from_bf16(IRBuilderBase& b, Value* x) {
  llvm::Type* const wide = like(x, b.getInt32Ty());
  Value* const bits = b.CreateShl(b.CreateZExt(x, wide), llvm::ConstantInt::get(wide, 16));
  return b.CreateBitCast(bits, like(x, b.getFloatTy()));
}

// Instructions of x86 flush denormals, and round them to zero.
Value* to_bf16(IRBuilderBase& b, Value* x) {
  llvm::Type* const wide = like(x, b.getInt32Ty());
  const auto number = [&](uint64_t value) { return llvm::ConstantInt::get(wide, value); };
  Value* const bits = b.CreateBitCast(x, wide);
  Value* const odd = b.CreateAnd(b.CreateLShr(bits, number(16)), number(1));
  Value* const rounded = b.CreateAdd(bits, b.CreateAdd(odd, number(0x7fff)));
  Value* const quiet = b.CreateOr(bits, number(0x400000));
  Value* const some = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(some, number(16)), like(x, b.getInt16Ty()));
}

llvm::Type* type_of(llvm::LLVMContext& context, ElementType type) {
  if (type == ElementType::kF32) return llvm::Type::getFloatTy(context);
  if (type == ElementType::kF64) return llvm::Type::getDoubleTy(context);
  if (type == ElementType::kF16) return llvm::Type::getHalfTy(context);
  if (is_pred(type)) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(bit_width(type)));
}

llvm::Type* memory_type_of(llvm::LLVMContext& context, ElementType type) {
  return is_pred(type) ? llvm::Type::getInt8Ty(context) : type_of(context, type);
}

llvm::Constant* constant(llvm::LLVMContext& context, ElementType type, uint64_t bits) {
  llvm::Type* const as = type_of(context, type);
  if (!is_float(type)) {
    const unsigned width = as->getIntegerBitWidth();
    return llvm::ConstantInt::get(context, llvm::APInt(64, bits).zextOrTrunc(width));
  }
  const auto width = static_cast<unsigned>(bit_width(type));
  return llvm::ConstantFP::get(
      context, llvm::APFloat(as->getFltSemantics(), llvm::APInt(64, bits).zextOrTrunc(width)));
}

Value* operation(IRBuilderBase& builder, const kernel::Node& node, ElementType from,
                 std::span<Value* const> operands, bool fits) {
  switch (node.op) {
    case OpCode::kSelect:
      return builder.CreateSelect(operands[0], operands[1], operands[2]);
    case OpCode::kConvert:
      return conversion(builder, from, node.type, operands[0]);
    case OpCode::kBitcast:
      return builder.CreateBitCast(operands[0],
                                   like(operands[0], type_of(builder.getContext(), node.type)));
    default:
      break;
  }
  if (is_comparison(node.op)) return comparison(builder, node.op, from, operands[0], operands[1]);
  if (is_float(from)) return on_floats(builder, node.op, operands);
  return on_integers(builder, node.op, from, operands, fits);
}

Value* combination(IRBuilderBase& builder, OpCode code, ElementType type, Value* x, Value* y) {
  Value* const operands[] = {x, y};
  return is_float(type) ? on_floats(builder, code, operands)
                        : on_integers(builder, code, type, operands, false);
}

llvm::Constant* identity_of(llvm::LLVMContext& context, OpCode code, ElementType type) {
  const auto number = [&](double value) {
    return constant(context, type, kernel::bits_of_real(type, value));
  };
  const auto integer = [&](int64_t value) {
    return constant(context, type, static_cast<uint64_t>(value));
  };
  switch (code) {
    case OpCode::kAdd:
      return is_float(type) ? number(-0.0) : integer(0);
    case OpCode::kMul:
      return is_float(type) ? number(1) : integer(1);
    case OpCode::kMin:
      return is_float(type) ? number(HUGE_VAL) : integer(integer_max(type));
    case OpCode::kMax:
      return is_float(type) ? number(-HUGE_VAL) : integer(integer_min(type));
    case OpCode::kAnd:
      return integer(-1);
    case OpCode::kOr:
    case OpCode::kXor:
      return integer(0);
    default:
      return nullptr;
  }
}

llvm::Constant* identity_of(llvm::LLVMContext& context, const kernel::Kernel& kernel,
                            const kernel::Node& reduction) {
  const kernel::Block& combination = kernel.block(reduction.blocks[1]);
  if (reduction.results.size() != 1 || combination.nodes.size() != 2) return nullptr;
  const ElementType type = kernel.value(reduction.results[0]).type;
  const kernel::Node& n = kernel.node(combination.nodes[0]);
  if (!kernel::is_scalar_op(n.op) || is_pred(type)) return nullptr;
  const std::vector<kernel::ValueId>& sides = combination.arguments;
  const bool both = n.operands == sides || (n.operands.size() == 2 && n.operands[0] == sides[1] &&
                                            n.operands[1] == sides[0]);
  if (!both || kernel.node(combination.nodes[1]).operands != n.results) return nullptr;
  return identity_of(context, n.op, type);
}

llvm::AtomicRMWInst::BinOp atomic_operation(kernel::AtomicKind kind, ElementType type) {
  using Op = llvm::AtomicRMWInst::BinOp;
  const bool is_signed = is_signed_integer(type);
  switch (kind) {
    case kernel::AtomicKind::kAdd:
      return Op::Add;
    case kernel::AtomicKind::kMin:
      return is_signed ? Op::Min : Op::UMin;
    case kernel::AtomicKind::kMax:
      return is_signed ? Op::Max : Op::UMax;
    case kernel::AtomicKind::kAnd:
      return Op::And;
    case kernel::AtomicKind::kOr:
      return Op::Or;
    case kernel::AtomicKind::kXor:
      break;
  }
  return Op::Xor;
}

}  // namespace tenon::codegen
