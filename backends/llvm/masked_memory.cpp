#include "backends/llvm/masked_memory.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

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

// The lanes of a vector of indices of 32 bits, in 64 bits: two of them leave the register at a
// time.
std::vector<Value*> lanes_in_pairs(llvm::IRBuilderBase& b, Value* indices, bool is_signed) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(indices->getType())->getNumElements();
  Value* const pairs =
      b.CreateBitCast(indices, llvm::FixedVectorType::get(b.getInt64Ty(), lanes / 2));
  std::vector<Value*> result;
  for (unsigned i = 0; i < lanes / 2; ++i) {
    Value* const pair = b.CreateExtractElement(pairs, i);
    Value* const low = b.CreateTrunc(pair, b.getInt32Ty());
    result.push_back(is_signed ? b.CreateSExt(low, b.getInt64Ty())
                               : b.CreateZExt(low, b.getInt64Ty()));
    result.push_back(is_signed ? b.CreateAShr(pair, 32) : b.CreateLShr(pair, 32));
  }
  return result;
}

// The addresses of the lanes.
std::vector<Value*> places_of(llvm::IRBuilderBase& b, Value* pointers) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(pointers->getType())->getNumElements();
  std::vector<Value*> places;
  auto* const from = llvm::dyn_cast<llvm::GetElementPtrInst>(pointers);
  const bool has_base = from != nullptr && from->getNumIndices() == 1 &&
                        !from->getPointerOperandType()->isVectorTy() && lanes % 2 == 0;
  if (has_base) {
    Value* indices = from->getOperand(1);
    const auto* const widened = llvm::dyn_cast<llvm::CastInst>(indices);
    const bool is_zext = llvm::isa<llvm::ZExtInst>(indices);
    if (is_zext || llvm::isa<llvm::SExtInst>(indices)) indices = widened->getOperand(0);
    if (indices->getType()->getScalarSizeInBits() == 32) {
      for (Value* const index : lanes_in_pairs(b, indices, !is_zext))
        places.push_back(
            b.CreateGEP(from->getSourceElementType(), from->getPointerOperand(), index));
      return places;
    }
  }
  for (unsigned lane = 0; lane < lanes; ++lane)
    places.push_back(b.CreateExtractElement(pointers, lane));
  return places;
}

// A gather of all lanes as a load for each.
Value* load_each(llvm::IRBuilderBase& b, const MaskedAccess& access) {
  Value* result = llvm::PoisonValue::get(access.type);
  uint64_t lane = 0;
  for (Value* const place : places_of(b, access.pointer)) {
    result = b.CreateInsertElement(
        result, b.CreateAlignedLoad(access.type->getElementType(), place, access.align), lane++);
  }
  return result;
}

bool is_whole_gather(const MaskedAccess& access) {
  const auto* const mask = llvm::dyn_cast<llvm::Constant>(access.mask);
  return access.type != nullptr && access.is_scattered() && !access.is_store() && mask != nullptr &&
         mask->isAllOnesValue();
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
  if (!access.is_store()) return load_each(b, access);
  b.CreateMaskedScatter(access.value, access.pointer, access.align);
  return nullptr;
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

bool loads_lanes_of(const llvm::TargetMachine& machine) {
  return machine.getTargetTriple().isX86() &&
         !machine.getMCSubtargetInfo()->checkFeatures("+fast-gather");
}

llvm::PreservedAnalyses ExpandMaskedMemoryPass::run(llvm::Function& function,
                                                    llvm::FunctionAnalysisManager& analyses) {
  const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  std::vector<llvm::IntrinsicInst*> calls, gathers;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
    if (call == nullptr) continue;
    const auto access = masked_access(*call);
    if (access && is_expanded(*access, target)) calls.push_back(call);
    if (access && loads_lanes_ && is_whole_gather(*access)) gathers.push_back(call);
  }
  for (llvm::IntrinsicInst* const call : gathers) {
    llvm::IRBuilder<> b(call);
    call->replaceAllUsesWith(load_each(b, *masked_access(*call)));
    call->eraseFromParent();
  }
  // Operands of later ones may be results of earlier ones.
  for (llvm::IntrinsicInst* const call : calls) expand(*masked_access(*call));
  if (!calls.empty()) return llvm::PreservedAnalyses::none();
  if (gathers.empty()) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace tenon::codegen
