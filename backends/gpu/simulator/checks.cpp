#include "backends/gpu/simulator/checks.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "backends/gpu/simulator/shadow.h"

namespace tenon::gpu {
namespace {

// A memory access of an instruction.
struct CheckedAccess {
  llvm::Instruction* instruction = nullptr;
  llvm::Value* pointer = nullptr;
  llvm::Value* bytes = nullptr;  // An i64.
  llvm::Align alignment;         // The alignment that a GPU requires.
  AccessKind kind{};
};

std::vector<CheckedAccess> accesses_of(llvm::Instruction& instruction,
                                       const llvm::DataLayout& layout) {
  llvm::Type* const number = llvm::Type::getInt64Ty(instruction.getContext());
  const auto one = [&](llvm::Value* pointer, llvm::Type* type, llvm::Align alignment,
                       AccessKind kind) {
    const auto bytes = layout.getTypeStoreSize(type).getFixedValue();
    return std::vector<CheckedAccess>{
        {&instruction, pointer, llvm::ConstantInt::get(number, bytes), alignment, kind}};
  };
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    return one(load->getPointerOperand(), load->getType(), load->getAlign(),
               load->isAtomic() ? AccessKind::kAtomic : AccessKind::kLoad);
  }
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    return one(store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(),
               store->isAtomic() ? AccessKind::kAtomic : AccessKind::kStore);
  }
  if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    return one(update->getPointerOperand(), update->getType(), update->getAlign(),
               AccessKind::kAtomic);
  }
  if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    return one(exchange->getPointerOperand(), exchange->getNewValOperand()->getType(),
               exchange->getAlign(), AccessKind::kAtomic);
  }
  if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) {
    llvm::IRBuilder<> b(memory);
    llvm::Value* const bytes = b.CreateZExt(memory->getLength(), number);
    std::vector<CheckedAccess> both = {{memory, memory->getRawDest(), bytes,
                                        memory->getDestAlign().valueOrOne(), AccessKind::kStore}};
    if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(memory)) {
      both.push_back({copy, copy->getRawSource(), bytes, copy->getSourceAlign().valueOrOne(),
                      AccessKind::kLoad});
    }
    return both;
  }
  return {};
}

int64_t granule_of(const CheckedAccess& access) {
  const auto* const bytes = llvm::dyn_cast<llvm::ConstantInt>(access.bytes);
  if (bytes == nullptr || bytes->isZero()) return 1;
  const int64_t count = bytes->getSExtValue();
  return count & -count;
}

class AccessChecker {
 public:
  AccessChecker(llvm::Function& function, llvm::Value* thread, const SharedVariables& variables)
      : module_(*function.getParent()), thread_(thread), variables_(variables) {}

  void check(const CheckedAccess& access) {
    const llvm::Value* const object = llvm::getUnderlyingObject(access.pointer, 0);
    if (const auto* own = llvm::dyn_cast<llvm::AllocaInst>(object)) {
      check_private(access, const_cast<llvm::AllocaInst&>(*own));
      return;
    }
    int32_t number = kUnknownObject;
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
      const auto found = variables_.find(variable);
      if (found == variables_.end()) return;  // A table of constants.
      number = object_of_variable(found->second);
    } else if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
      // Only the arguments of kernels are known.
      const bool of_kernel =
          argument->getParent()->getCallingConv() == llvm::CallingConv::PTX_Kernel;
      if (of_kernel) number = static_cast<int32_t>(argument->getArgNo());
    }
    note(access, number);
    llvm::IRBuilder<> b(access.instruction);
    b.CreateCall(declare(module_, SimFunction::kAccess),
                 {thread_, generic(b, access.pointer), access.bytes,
                  b.getInt32(static_cast<uint32_t>(access.alignment.value())),
                  b.getInt32(static_cast<uint32_t>(access.kind)),
                  b.getInt32(static_cast<uint32_t>(number))});
  }

  const AccessFacts& facts() const { return facts_; }

 private:
  static llvm::Value* generic(llvm::IRBuilder<>& b, llvm::Value* pointer) {
    if (pointer->getType() == b.getPtrTy()) return pointer;
    // Always an instruction, even for constants: a variable has a different address in each block.
    return b.Insert(new llvm::AddrSpaceCastInst(pointer, b.getPtrTy()));
  }

  void note(const CheckedAccess& access, int32_t object) {
    facts_.granule = std::min(facts_.granule, granule_of(access));
    if (access.kind == AccessKind::kLoad || is_variable(object)) return;
    if (object == kUnknownObject) {
      facts_.stores_anywhere = true;
    } else {
      facts_.stored.insert(static_cast<unsigned>(object));
    }
  }

  // Constant offsets are checked here: a call that takes the address would keep the array out of
  // registers.
  void check_private(const CheckedAccess& access, llvm::AllocaInst& array) {
    const llvm::DataLayout& layout = module_.getDataLayout();
    const auto size = array.getAllocationSize(layout);
    llvm::APInt offset(64, 0);
    const llvm::Value* const base = access.pointer->stripAndAccumulateConstantOffsets(
        layout, offset, /*AllowNonInbounds=*/true);
    const auto* const bytes = llvm::dyn_cast<llvm::ConstantInt>(access.bytes);
    const int64_t at = offset.getSExtValue();
    if (base == &array && bytes != nullptr && size && at >= 0 &&
        at + bytes->getSExtValue() <= static_cast<int64_t>(size->getFixedValue())) {
      return;
    }
    llvm::IRBuilder<> b(access.instruction);
    b.CreateCall(declare(module_, SimFunction::kPrivate),
                 {thread_, generic(b, access.pointer), access.bytes, generic(b, &array),
                  b.getInt64(size ? size->getFixedValue() : 0)});
  }

  llvm::Module& module_;
  llvm::Value* const thread_;
  const SharedVariables& variables_;
  AccessFacts facts_;
};

}  // namespace

llvm::FunctionCallee declare(llvm::Module& module, SimFunction function) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const p = llvm::PointerType::getUnqual(context);
  llvm::Type* const i32 = llvm::Type::getInt32Ty(context);
  llvm::Type* const i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* result = llvm::Type::getVoidTy(context);
  std::vector<llvm::Type*> types;
  switch (function) {
    case SimFunction::kBarrier:
      types = {p, i32};
      break;
    case SimFunction::kWarpBarrier:
      types = {p, i32, i32};
      break;
    case SimFunction::kShuffle:
      types = {p, i32, i32, i32, i32, i32, i32};
      result = i32;
      break;
    case SimFunction::kAccess:
      types = {p, p, i64, i32, i32, i32};
      break;
    case SimFunction::kPrivate:
      types = {p, p, i64, p, i64};
      break;
    case SimFunction::kStop:
      types = {p};
      break;
  }
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(kSimFunctionNames[static_cast<size_t>(function)],
                                 llvm::FunctionType::get(result, types, /*isVarArg=*/false));
  auto* const declared = llvm::cast<llvm::Function>(callee.getCallee());
  declared->setDoesNotThrow();
  if (function == SimFunction::kStop) declared->setDoesNotReturn();
  return callee;
}

AccessFacts add_checks(llvm::Function& function, llvm::Value* thread,
                       const SharedVariables& variables) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  std::vector<CheckedAccess> all;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    for (const CheckedAccess& access : accesses_of(each, layout)) all.push_back(access);
  }
  AccessChecker checker(function, thread, variables);
  for (const CheckedAccess& access : all) checker.check(access);
  return checker.facts();
}

}  // namespace tenon::gpu
