#include "backends/llvm/masked_memory.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <optional>
#include <vector>

#include "backends/llvm/loops.h"

namespace tenon::codegen {
namespace {

using llvm::Value;

struct MaskedAccess {
  llvm::IntrinsicInst* call;
  llvm::FixedVectorType* type;
  Value* pointer;  ///< A vector of them for gathers and scatters.
  Value* mask;
  Value* value;  ///< It is stored, or the lanes that are off have it.
  llvm::Align align;

  bool is_scattered() const { return pointer->getType()->isVectorTy(); }
  bool is_store() const { return call->getType()->isVoidTy(); }
};

std::optional<MaskedAccess> masked_access(llvm::IntrinsicInst& call) {
  const auto parts = [&](Value* pointer, unsigned align, Value* mask, Value* value) {
    const auto* const bytes = llvm::cast<llvm::ConstantInt>(call.getArgOperand(align));
    return MaskedAccess{&call,   llvm::dyn_cast<llvm::FixedVectorType>(value->getType()),
                        pointer, mask,
                        value,   llvm::Align(bytes->getZExtValue())};
  };
  const auto operand = [&](unsigned i) { return call.getArgOperand(i); };
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather:
      return parts(operand(0), 1, operand(2), operand(3));
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter:
      return parts(operand(1), 2, operand(3), operand(0));
    default:
      return std::nullopt;
  }
}

bool is_legal(const MaskedAccess& access, const llvm::TargetTransformInfo& target) {
  llvm::Type* const type = access.type;
  if (!access.is_scattered()) {
    return access.is_store() ? target.isLegalMaskedStore(type, access.align)
                             : target.isLegalMaskedLoad(type, access.align);
  }
  return access.is_store() ? target.isLegalMaskedScatter(type, access.align) &&
                                 !target.forceScalarizeMaskedScatter(access.type, access.align)
                           : target.isLegalMaskedGather(type, access.align) &&
                                 !target.forceScalarizeMaskedGather(access.type, access.align);
}

bool is_expanded(const MaskedAccess& access, const llvm::TargetTransformInfo& target) {
  if (access.type == nullptr || llvm::isa<llvm::Constant>(access.mask)) return false;
  const unsigned lanes = access.type->getNumElements();
  return lanes >= ExpandMaskedMemoryPass::kLeastExpandedLanes && lanes <= 64 &&
         !is_legal(access, target);
}

// The access of all lanes; its result, or null.
Value* access_all(llvm::IRBuilderBase& b, const MaskedAccess& access) {
  if (!access.is_scattered()) {
    if (access.is_store()) {
      b.CreateAlignedStore(access.value, access.pointer, access.align);
      return nullptr;
    }
    return b.CreateAlignedLoad(access.type, access.pointer, access.align);
  }
  if (access.is_store()) {
    b.CreateMaskedScatter(access.value, access.pointer, access.align);
    return nullptr;
  }
  return b.CreateMaskedGather(access.type, access.pointer, access.align);
}

// A place in the function's frame.
llvm::AllocaInst* make_slot(llvm::Function& function, llvm::Type* type) {
  llvm::BasicBlock& entry = function.getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
}

// The access of one lane after the other of those whose bits are set; its result, or null.
Value* access_each(llvm::IRBuilderBase& b, const MaskedAccess& access, Value* bits) {
  llvm::Function& function = *access.call->getFunction();
  llvm::Type* const element = access.type->getElementType();
  llvm::AllocaInst* const lanes = make_slot(function, access.type);
  b.CreateStore(access.value, lanes);
  llvm::AllocaInst* places = nullptr;
  if (access.is_scattered()) {
    places = make_slot(function, access.pointer->getType());
    b.CreateStore(access.pointer, places);
  }
  Value* left = nullptr;
  emit_while(
      b, {bits},
      [&](const LlvmValues& carried) {
        left = carried[0];
        return b.CreateIsNotNull(left);
      },
      [&]() -> LlvmValues {
        Value* const i = b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b.getTrue());
        Value* const lane = b.CreateInBoundsGEP(element, lanes, i);
        Value* const place =
            places == nullptr
                ? b.CreateGEP(element, access.pointer, i)
                : b.CreateLoad(b.getPtrTy(), b.CreateInBoundsGEP(b.getPtrTy(), places, i));
        const llvm::Align align =
            access.is_scattered()
                ? access.align
                : llvm::commonAlignment(access.align, element->getPrimitiveSizeInBits() / 8);
        Value* const from = access.is_store() ? lane : place;
        Value* const to = access.is_store() ? place : lane;
        const llvm::Align own = llvm::Align(1);
        Value* const value = b.CreateAlignedLoad(element, from, access.is_store() ? own : align);
        b.CreateAlignedStore(value, to, access.is_store() ? align : own);
        return {b.CreateAnd(left, b.CreateSub(left, llvm::ConstantInt::get(left->getType(), 1)))};
      });
  return access.is_store() ? nullptr : b.CreateLoad(access.type, lanes);
}

void expand(const MaskedAccess& access) {
  llvm::BasicBlock* const before = access.call->getParent();
  llvm::BasicBlock* const after = before->splitBasicBlock(access.call);
  before->getTerminator()->eraseFromParent();
  llvm::IRBuilder<> b(before);
  const unsigned lanes = access.type->getNumElements();
  Value* const bits = b.CreateBitCast(access.mask, b.getIntNTy(lanes));
  Value* const is_full = b.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
  const LlvmValues results = emit_if(b, is_full, [&](size_t side) -> LlvmValues {
    Value* const value = side == 0 ? access_all(b, access)
                                   : access_each(b, access, b.CreateZExt(bits, b.getInt64Ty()));
    return value == nullptr ? LlvmValues{} : LlvmValues{value};
  });
  b.CreateBr(after);
  if (!results.empty()) access.call->replaceAllUsesWith(results[0]);
  access.call->eraseFromParent();
}

}  // namespace

llvm::PreservedAnalyses ExpandMaskedMemoryPass::run(llvm::Function& function,
                                                    llvm::FunctionAnalysisManager& analyses) {
  const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  std::vector<llvm::IntrinsicInst*> calls;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
    if (call == nullptr) continue;
    const auto access = masked_access(*call);
    if (access && is_expanded(*access, target)) calls.push_back(call);
  }
  // Operands of later ones may be results of earlier ones.
  for (llvm::IntrinsicInst* const call : calls) expand(*masked_access(*call));
  return calls.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace tenon::codegen
