#include "backends/gpu/simulator/retype.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <vector>

namespace tenon::gpu {
namespace {

constexpr unsigned kSharedAddressSpace = 3;
constexpr const char* kThreadPlaceholder = "tenon_sim_thread";

// Maps every pointer type to a single address space.
class GenericPointers final : public llvm::ValueMapTypeRemapper {
 public:
  llvm::Type* remapType(llvm::Type* type) override {
    if (type->isPointerTy()) return llvm::PointerType::getUnqual(type->getContext());
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
      return llvm::ArrayType::get(remapType(array->getElementType()), array->getNumElements());
    }
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
      return llvm::FixedVectorType::get(remapType(vector->getElementType()),
                                        vector->getNumElements());
    }
    if (auto* function = llvm::dyn_cast<llvm::FunctionType>(type)) return remap(function);
    auto* const structure = llvm::dyn_cast<llvm::StructType>(type);
    if (structure == nullptr || structure->isOpaque()) return type;
    std::vector<llvm::Type*> parts;
    for (llvm::Type* part : structure->elements()) parts.push_back(remapType(part));
    if (llvm::ArrayRef(parts) == structure->elements()) return type;
    return llvm::StructType::get(type->getContext(), parts, structure->isPacked());
  }

  llvm::FunctionType* remap(llvm::FunctionType* type, bool with_thread = false) {
    std::vector<llvm::Type*> types;
    if (with_thread) types.push_back(llvm::PointerType::getUnqual(type->getContext()));
    for (llvm::Type* each : type->params()) types.push_back(remapType(each));
    return llvm::FunctionType::get(remapType(type->getReturnType()), types, type->isVarArg());
  }
};

// The attributes of a GPU function for the host function: all except the GPU-specific ones, with
// parameter attributes shifted by one.
llvm::AttributeList shifted(const llvm::Function& function) {
  llvm::LLVMContext& context = function.getContext();
  const llvm::AttributeList old = function.getAttributes();
  llvm::AttrBuilder whole(context);
  for (const llvm::Attribute each : old.getFnAttrs()) {
    const bool of_target =
        each.isStringAttribute() && (each.getKindAsString().starts_with("target-") ||
                                     each.getKindAsString().starts_with("nvvm"));
    // The function reads the SimThread, and the simulator's functions may write any memory.
    if (!of_target && !each.hasAttribute(llvm::Attribute::Memory)) whole.addAttribute(each);
  }
  std::vector<llvm::AttributeSet> parameters = {llvm::AttributeSet()};
  for (unsigned i = 0; i < function.arg_size(); ++i) parameters.push_back(old.getParamAttrs(i));
  return llvm::AttributeList::get(context, llvm::AttributeSet::get(context, whole),
                                  old.getRetAttrs(), parameters);
}

class Retyper {
 public:
  Retyper(llvm::Module& module, std::span<llvm::Function* const> functions)
      : module_(module), functions_(functions) {}

  std::map<llvm::Function*, llvm::Function*> run() {
    llvm::ValueToValueMapTy values;
    for (llvm::Function* old : functions_) {
      auto* const made = llvm::Function::Create(types_.remap(old->getFunctionType(), true),
                                                llvm::GlobalValue::InternalLinkage, "", module_);
      made->takeName(old);
      made->setAttributes(shifted(*old));
      made->getArg(0)->setName("thread");
      for (llvm::Argument& each : old->args()) {
        values[&each] = made->getArg(each.getArgNo() + 1);
        values[&each]->takeName(&each);
      }
      made->splice(made->begin(), old);
      values[old] = made;
      made_[old] = made;
    }
    map_declarations(values);
    for (llvm::Function* old : functions_) {
      llvm::Function& made = *made_[old];
      llvm::RemapFunction(made, values, llvm::RF_IgnoreMissingLocals, &types_);
      finish(made);
    }
    // The old tables are unused now.
    for (llvm::GlobalVariable* each : old_tables_) each->eraseFromParent();
    return std::move(made_);
  }

 private:
  // Intrinsics whose names contain pointer types, and tables of constants.
  void map_declarations(llvm::ValueToValueMapTy& values) {
    std::vector<llvm::Function*> declared;
    for (llvm::Function& each : module_) {
      if (each.isIntrinsic()) declared.push_back(&each);
    }
    for (llvm::Function* each : declared) {
      llvm::SmallVector<llvm::Type*, 4> overloaded;
      if (!llvm::Intrinsic::getIntrinsicSignature(each, overloaded)) continue;
      for (llvm::Type*& type : overloaded) type = types_.remapType(type);
      values[each] = llvm::Intrinsic::getDeclaration(&module_, each->getIntrinsicID(), overloaded);
    }
    std::vector<llvm::GlobalVariable*> tables;
    for (llvm::GlobalVariable& each : module_.globals()) {
      const unsigned space = each.getAddressSpace();
      if (space != 0 && space != kSharedAddressSpace) tables.push_back(&each);
    }
    for (llvm::GlobalVariable* each : tables) {
      auto* const table =
          new llvm::GlobalVariable(module_, each->getValueType(), /*isConstant=*/true,
                                   llvm::GlobalValue::InternalLinkage, each->getInitializer());
      table->setAlignment(each->getAlign());
      table->takeName(each);
      values[each] = table;
      old_tables_.push_back(each);
    }
  }

  void finish(llvm::Function& function) {
    std::vector<llvm::Instruction*> all;
    for (llvm::Instruction& each : llvm::instructions(function)) all.push_back(&each);
    for (llvm::Instruction* each : all) {
      if (auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(each)) {
        cast->replaceAllUsesWith(cast->getOperand(0));
        cast->eraseFromParent();
        continue;
      }
      auto* const call = llvm::dyn_cast<llvm::CallInst>(each);
      llvm::Function* const callee = call == nullptr ? nullptr : call->getCalledFunction();
      if (callee == nullptr) {
        if (call != nullptr) add_thread_argument(*call);
        continue;
      }
      if (callee->getName() != kThreadPlaceholder) continue;
      call->replaceAllUsesWith(function.getArg(0));
      call->eraseFromParent();
    }
  }

  // The called function already takes the thread: getCalledFunction() would see a type mismatch.
  static void add_thread_argument(llvm::CallInst& call) {
    auto* const callee = llvm::cast<llvm::Function>(call.getCalledOperand());
    std::vector<llvm::Value*> arguments = {call.getFunction()->getArg(0)};
    arguments.insert(arguments.end(), call.arg_begin(), call.arg_end());
    llvm::IRBuilder<> b(&call);
    llvm::CallInst* const made = b.CreateCall(callee, arguments);
    call.replaceAllUsesWith(made);
    call.eraseFromParent();
  }

  llvm::Module& module_;
  const std::span<llvm::Function* const> functions_;
  GenericPointers types_;
  std::map<llvm::Function*, llvm::Function*> made_;
  std::vector<llvm::GlobalVariable*> old_tables_;
};

}  // namespace

llvm::FunctionCallee declare_thread(llvm::Module& module) {
  llvm::Type* const pointer = llvm::PointerType::getUnqual(module.getContext());
  return module.getOrInsertFunction(kThreadPlaceholder,
                                    llvm::FunctionType::get(pointer, /*isVarArg=*/false));
}

std::map<llvm::Function*, llvm::Function*> retype_for_host(
    llvm::Module& module, std::span<llvm::Function* const> functions) {
  return Retyper(module, functions).run();
}

}  // namespace tenon::gpu
