#include "backends/gpu/simulator/pass.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "backends/gpu/simulator/checks.h"
#include "backends/gpu/simulator/retype.h"
#include "backends/llvm/host.h"

namespace tenon::gpu {
namespace {

constexpr unsigned kSharedSpace = 3;

// The offset in SimThread of the member for a special register.
std::optional<size_t> register_of(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
      return offsetof(SimThread, tid_x);
    case llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x:
      return offsetof(SimThread, ntid_x);
    case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
      return offsetof(SimThread, ctaid_x);
    case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
      return offsetof(SimThread, ctaid_y);
    case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
      return offsetof(SimThread, nctaid_x);
    default:
      return std::nullopt;
  }
}

std::optional<ShuffleMode> shuffle_of(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::nvvm_shfl_sync_idx_i32:
      return ShuffleMode::kIdx;
    case llvm::Intrinsic::nvvm_shfl_sync_up_i32:
      return ShuffleMode::kUp;
    case llvm::Intrinsic::nvvm_shfl_sync_down_i32:
      return ShuffleMode::kDown;
    case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32:
      return ShuffleMode::kBfly;
    default:
      return std::nullopt;
  }
}

bool synchronizes(llvm::Intrinsic::ID id) {
  return id == llvm::Intrinsic::nvvm_barrier0 || id == llvm::Intrinsic::nvvm_bar_warp_sync ||
         shuffle_of(id).has_value();
}

bool is_known(const llvm::Function& callee) {
  if (!callee.isDeclaration()) return true;
  const llvm::Intrinsic::ID id = callee.getIntrinsicID();
  if (register_of(id) || synchronizes(id)) return true;
  // These would end the process.
  if (id == llvm::Intrinsic::trap || id == llvm::Intrinsic::debugtrap ||
      id == llvm::Intrinsic::ubsantrap) {
    return false;
  }
  return id != llvm::Intrinsic::not_intrinsic && !callee.getName().starts_with("llvm.nvvm.");
}

Status check_calls(llvm::Function& function) {
  const std::string where = function.getName().str();
  for (llvm::Instruction& each : llvm::instructions(function)) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
    if (call == nullptr) continue;
    const llvm::Function* const callee = call->getCalledFunction();
    if (callee == nullptr) {
      return unimplemented("gpu-sim: @{} calls assembly or by a pointer", where);
    }
    if (!is_known(*callee)) {
      return unimplemented("gpu-sim: @{} calls {}, which the simulator does not know", where,
                           callee->getName().str());
    }
    if (callee->getCallingConv() == llvm::CallingConv::PTX_Kernel) {
      return unimplemented("gpu-sim: @{} calls the kernel @{}", where, callee->getName().str());
    }
  }
  return {};
}

class HostCode {
 public:
  HostCode(llvm::Module& module, bool checks) : module_(module), checks_(checks) {}

  Result<SimImage> make() {
    for (llvm::Function& each : module_) {
      if (!each.isDeclaration()) functions_.push_back(&each);
    }
    for (llvm::Function* each : functions_) TENON_TRY(check_calls(*each));
    TENON_TRY(take_variables());
    image_.checks = checks_;
    for (llvm::Function* each : functions_) {
      thread_ = add_thread(*each);
      Facts& facts = facts_[each];
      facts.stack_bytes = stack_bytes_of(*each);
      if (checks_) facts.accesses = add_checks(*each, thread_, variables_);
      replace_calls(*each, facts);
      replace_variables(*each);
      add_polls(*each);
    }
    made_ = retype_for_host(module_, functions_);
    for (llvm::Function* each : functions_) {
      if (each->getCallingConv() == llvm::CallingConv::PTX_Kernel) add_kernel(*each);
    }
    remove_old();
    return std::move(image_);
  }

 private:
  struct Facts {
    AccessFacts accesses;
    bool synchronizes = false;
    int64_t stack_bytes = 0;
  };

  // Offsets of the variables in shared memory: variables of a single kernel follow those of
  // functions.
  Status take_variables() {
    std::vector<llvm::Constant*> globals;
    for (llvm::GlobalVariable& each : module_.globals()) {
      const bool is_shared = each.getAddressSpace() == kSharedSpace;
      if (each.isDeclaration() || (!is_shared && !each.isConstant())) {
        return unimplemented(
            "gpu-sim: @{} is neither a constant nor a variable of shared memory of the module",
            each.getName().str());
      }
      if (is_shared || each.getAddressSpace() != 0) globals.push_back(&each);
    }
    llvm::convertUsersOfConstantsToInstructions(globals);
    std::map<llvm::Function*, std::vector<llvm::GlobalVariable*>> own;
    for (llvm::GlobalVariable& each : module_.globals()) {
      if (each.getAddressSpace() != kSharedSpace) continue;
      std::set<llvm::Function*> users;
      for (llvm::User* user : each.users()) {
        if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
          users.insert(instruction->getFunction());
        }
      }
      const bool alone =
          users.size() == 1 && (*users.begin())->getCallingConv() == llvm::CallingConv::PTX_Kernel;
      own[alone ? *users.begin() : nullptr].push_back(&each);
    }
    int64_t common = 0;
    for (llvm::GlobalVariable* each : own[nullptr]) place(*each, &common);
    for (llvm::Function* function : functions_) {
      int64_t end = common;
      for (llvm::GlobalVariable* each : own[function]) place(*each, &end);
      shared_bytes_[function] = end;
    }
    return {};
  }

  void place(llvm::GlobalVariable& variable, int64_t* end) {
    const llvm::DataLayout& layout = module_.getDataLayout();
    const auto align = static_cast<int64_t>(
        std::max(variable.getAlign().valueOrOne(), layout.getPreferredAlign(&variable)).value());
    const auto bytes =
        static_cast<int64_t>(layout.getTypeAllocSize(variable.getValueType()).getFixedValue());
    const int64_t offset = (*end + align - 1) / align * align;
    *end = offset + bytes;
    variables_[&variable] = image_.variables.size();
    placed_.push_back(&variable);
    image_.variables.push_back({variable.getName().str(), offset, bytes});
  }

  // A placeholder for the parameter that the function gets at the end.
  llvm::Value* add_thread(llvm::Function& function) {
    llvm::IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
    return b.CreateCall(declare_thread(module_));
  }

  int64_t stack_bytes_of(llvm::Function& function) const {
    int64_t bytes = 0;
    for (llvm::Instruction& each : llvm::instructions(function)) {
      if (auto* array = llvm::dyn_cast<llvm::AllocaInst>(&each)) {
        const auto size = array->getAllocationSize(module_.getDataLayout());
        if (size) bytes += static_cast<int64_t>(size->getFixedValue());
      }
    }
    return bytes;
  }

  llvm::Value* member(llvm::IRBuilder<>& b, llvm::Type* type, size_t offset) const {
    llvm::LoadInst* const load =
        b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), thread_, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return load;
  }

  uint32_t add_site(llvm::CallBase& call, std::string_view what) {
    std::string text = fmt::format("{} {} of @{}", what, ++site_count_[call.getFunction()],
                                   call.getFunction()->getName().str());
    if (const llvm::DebugLoc& location = call.getDebugLoc()) {
      text += fmt::format(" in line {}", location.getLine());
    }
    image_.sites.push_back(std::move(text));
    return static_cast<uint32_t>(image_.sites.size() - 1);
  }

  void replace_calls(llvm::Function& function, Facts& facts) {
    std::vector<llvm::CallBase*> calls;
    for (llvm::Instruction& each : llvm::instructions(function)) {
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(&each)) calls.push_back(call);
    }
    for (llvm::CallBase* call : calls) {
      const llvm::Intrinsic::ID id = call->getCalledFunction()->getIntrinsicID();
      llvm::IRBuilder<> b(call);
      llvm::Value* value = nullptr;
      const auto offset = register_of(id);
      if (!offset && !synchronizes(id)) continue;
      facts.synchronizes |= !offset;
      if (offset) {
        value = member(b, b.getInt32Ty(), *offset);
      } else if (id == llvm::Intrinsic::nvvm_barrier0) {
        b.CreateCall(declare(module_, SimFunction::kBarrier),
                     {thread_, b.getInt32(add_site(*call, "barrier"))});
      } else if (id == llvm::Intrinsic::nvvm_bar_warp_sync) {
        b.CreateCall(
            declare(module_, SimFunction::kWarpBarrier),
            {thread_, b.getInt32(add_site(*call, "warp barrier")), call->getArgOperand(0)});
      } else {
        value = b.CreateCall(
            declare(module_, SimFunction::kShuffle),
            {thread_, b.getInt32(add_site(*call, "shuffle")),
             b.getInt32(static_cast<uint32_t>(*shuffle_of(id))), call->getArgOperand(0),
             call->getArgOperand(1), call->getArgOperand(2), call->getArgOperand(3)});
      }
      if (value != nullptr) call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
  }

  void replace_variables(llvm::Function& function) {
    llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(thread_)->getNextNode());
    llvm::Value* shared = nullptr;
    for (llvm::GlobalVariable* variable : placed_) {
      std::vector<llvm::Use*> uses;
      for (llvm::Use& use : variable->uses()) {
        auto* const user = llvm::dyn_cast<llvm::Instruction>(use.getUser());
        if (user != nullptr && user->getFunction() == &function) uses.push_back(&use);
      }
      if (uses.empty()) continue;
      if (shared == nullptr) shared = member(b, b.getPtrTy(), offsetof(SimThread, shared));
      llvm::Value* const place = b.CreateAddrSpaceCast(
          b.CreateConstInBoundsGEP1_64(
              b.getInt8Ty(), shared,
              static_cast<uint64_t>(image_.variables[variables_[variable]].offset)),
          variable->getType());
      for (llvm::Use* use : uses) use->set(place);
    }
  }

  // A loop checks in each iteration whether it should end.
  void add_polls(llvm::Function& function) {
    llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 8> edges;
    llvm::FindFunctionBackedges(function, edges);
    if (edges.empty()) return;
    llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(thread_)->getNextNode());
    llvm::Value* words[2];
    for (size_t i = 0; i < 2; ++i) {
      words[i] = member(b, b.getPtrTy(), offsetof(SimThread, stops) + i * sizeof(void*));
    }
    for (const auto& [from, to] : edges) {
      llvm::BasicBlock* const edge =
          llvm::SplitEdge(const_cast<llvm::BasicBlock*>(from), const_cast<llvm::BasicBlock*>(to));
      b.SetInsertPoint(edge->getTerminator());
      llvm::Value* const stop = b.CreateOr(b.CreateLoad(b.getInt32Ty(), words[0], true),
                                           b.CreateLoad(b.getInt32Ty(), words[1], true));
      llvm::Instruction* const then = llvm::SplitBlockAndInsertIfThen(
          b.CreateICmpNE(stop, b.getInt32(0)), edge->getTerminator(), /*Unreachable=*/true);
      b.SetInsertPoint(then);
      b.CreateCall(declare(module_, SimFunction::kStop), {thread_});
    }
  }

  // The function of type SimEntry, with the kernel's name.
  void add_kernel(llvm::Function& old) {
    llvm::Function* const body = made_[&old];
    SimKernel kernel;
    kernel.symbol = body->getName().str();
    body->setName(kernel.symbol + ".body");
    Facts whole = facts_[&old];
    for (const auto& [function, facts] : facts_) {
      if (function->getCallingConv() == llvm::CallingConv::PTX_Kernel) continue;
      // Added even if it is not called.
      whole.synchronizes |= facts.synchronizes;
      whole.stack_bytes += facts.stack_bytes;
      whole.accesses.granule = std::min(whole.accesses.granule, facts.accesses.granule);
      whole.accesses.stores_anywhere |= facts.accesses.stores_anywhere;
    }
    kernel.synchronizes = whole.synchronizes;
    kernel.stack_bytes = whole.stack_bytes;
    kernel.shared_bytes = shared_bytes_[&old];
    kernel.granule = whole.accesses.granule;
    llvm::LLVMContext& context = module_.getContext();
    llvm::Type* const pointer = llvm::PointerType::getUnqual(context);
    auto* const entry = llvm::Function::Create(
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false),
        llvm::GlobalValue::ExternalLinkage, kernel.symbol, module_);
    entry->setDoesNotThrow();
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", entry));
    std::vector<llvm::Value*> arguments = {entry->getArg(0)};
    for (unsigned i = 0; i < old.arg_size(); ++i) {
      llvm::Argument& argument = *body->getArg(i + 1);
      const bool is_buffer = argument.getType()->isPointerTy();
      const auto bytes = module_.getDataLayout().getTypeStoreSize(argument.getType());
      kernel.parameters.push_back(
          {argument.hasName() ? argument.getName().str() : fmt::format("argument {}", i),
           static_cast<int64_t>(bytes.getFixedValue()), is_buffer,
           is_buffer && (whole.accesses.stores_anywhere || whole.accesses.stored.contains(i))});
      llvm::Value* const place =
          b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(pointer, entry->getArg(1), i));
      arguments.push_back(b.CreateLoad(argument.getType(), place));
    }
    b.CreateCall(body, arguments);
    b.CreateRetVoid();
    image_.kernels.push_back(std::move(kernel));
  }

  void remove_old() {
    for (llvm::Function* old : functions_) old->eraseFromParent();
    for (llvm::GlobalVariable* each : placed_) each->eraseFromParent();
    std::vector<llvm::Function*> unused;
    for (llvm::Function& each : module_) {
      if (each.isDeclaration() && each.use_empty()) unused.push_back(&each);
    }
    for (llvm::Function* each : unused) each->eraseFromParent();
    if (llvm::NamedMDNode* const notes = module_.getNamedMetadata("nvvm.annotations")) {
      notes->eraseFromParent();
    }
  }

  llvm::Module& module_;
  const bool checks_;
  SimImage image_;
  std::vector<llvm::Function*> functions_;  // The original functions.
  std::map<llvm::Function*, llvm::Function*> made_;
  std::map<llvm::Function*, Facts> facts_;
  std::map<llvm::Function*, int64_t> shared_bytes_;
  std::map<llvm::Function*, uint32_t> site_count_;
  SharedVariables variables_;
  std::vector<llvm::GlobalVariable*> placed_;  // In the order of image_.variables.
  llvm::Value* thread_ = nullptr;              // In the current function.
};

}  // namespace

Result<SimImage> make_host_code(llvm::Module& module, bool checks) {
  return HostCode(module, checks).make();
}

Result<std::string> assemble_for_host(llvm::Module& module, bool checks, const std::string& dump) {
  if (!dump.empty()) codegen::write_text(module, dump + ".gpu.ll");
  TENON_ASSIGN(SimImage image, make_host_code(module, checks));
  TENON_ASSIGN(llvm::TargetMachine* const machine, codegen::host_machine());
  codegen::set_target(module, *machine);
  TENON_ASSIGN(image.object, codegen::compile_to_object(module, *machine, dump));
  return save(image);
}

}  // namespace tenon::gpu
