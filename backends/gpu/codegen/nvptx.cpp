#include "backends/gpu/codegen/nvptx.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/InferAlignment.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <mutex>

#include "backends/llvm/host.h"
#include "core/base/file.h"

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tenon::gpu {
namespace {

// The turns of a loop that are given at once: all, or as many as divide all, if there is such a
// number, up to a bound of instructions and of loaded words, which wait in registers of 4 bytes.
unsigned turns_at_once(unsigned turns, unsigned instructions, unsigned words) {
  constexpr unsigned kMostTurnsAtOnce = 24;
  constexpr unsigned kMostInstructions = 512;
  constexpr unsigned kMostWords = 32;
  const unsigned most =
      std::min({kMostTurnsAtOnce, kMostInstructions / instructions, kMostWords / words});
  if (most >= turns) return turns;
  for (unsigned count = most; 2 * count > most && count > 1; --count) {
    if (turns % count == 0) return count;
  }
  return most;
}

// Marks loops to be unrolled in part: innermost ones of a known number of turns, that load from
// global memory. A load waits some hundred cycles, so those of several turns are given before the
// first is used. ptxas unrolls few of these loops itself. Threads meet in a loop that is left
// alone.
class MarkLoops : public llvm::PassInfoMixin<MarkLoops> {
 public:
  static llvm::PreservedAnalyses run(llvm::Function& function,
                                     llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto& scalars = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
    for (llvm::Loop* const loop : loops.getLoopsInPreorder()) {
      if (loop->isInnermost()) mark(*loop, scalars.getSmallConstantTripCount(loop));
    }
    return llvm::PreservedAnalyses::all();
  }

 private:
  static void mark(llvm::Loop& loop, unsigned turns) {
    unsigned instructions = 0;
    unsigned words = 0;
    for (const llvm::BasicBlock* const block : loop.blocks()) {
      for (const llvm::Instruction& each : *block) {
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
        if (call != nullptr && (call->isConvergent() || !call->doesNotAccessMemory())) return;
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&each);
        if (load != nullptr && load->getPointerAddressSpace() == kGlobal) words += words_of(*load);
        ++instructions;
      }
    }
    if (turns < 2 || words == 0) return;
    const unsigned count = turns_at_once(turns, instructions, words);
    if (count > 1) llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.count", count);
  }

  static unsigned words_of(const llvm::LoadInst& load) {
    const auto bits = static_cast<unsigned>(load.getType()->getPrimitiveSizeInBits());
    return std::max(1U, bits / 32);
  }

  static constexpr unsigned kGlobal = 1;
};

// Loops over a thread's arrays are unrolled first, so that the arrays become registers; then
// redundancy of the emitted code is removed: index arithmetic, loads from memory without stores.
void add_passes(llvm::FunctionPassManager& passes) {
  const auto add_licm = [&] {
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                         /*UseMemorySSA=*/true));
  };
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  add_licm();
  llvm::LoopPassManager unroll;
  unroll.addPass(llvm::IndVarSimplifyPass());
  unroll.addPass(llvm::LoopDeletionPass());
  unroll.addPass(llvm::LoopFullUnrollPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(unroll)));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::DSEPass());
  add_licm();
  passes.addPass(MarkLoops());
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2, /*OnlyWhenForced=*/true)));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InferAlignmentPass());
}

// The PTX version of CUDA 11.8, the first that supports all of these chips; newer drivers compile
// it.
constexpr const char* kPtxVersion = "+ptx78";

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const std::string& triple,
                                                          int32_t compute_capability) {
  initialize();
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return unimplemented("gpu: LLVM has no target {}", triple);
  int32_t chip = 0;
  for (const PtxChip& each : kPtxChips) {
    if (each.compute_capability <= compute_capability) chip = each.compute_capability;
  }
  if (chip == 0) {
    return unimplemented("gpu: sm_{} is older than sm_75", compute_capability);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // K8
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, fmt::format("sm_{}", chip), kPtxVersion, options,
                                  std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
}

Status optimize_on(llvm::TargetMachine& machine, llvm::Module& module, const std::string& dump) {
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  if (llvm::verifyModule(module, &complaints)) {
    return internal_error("gpu: the module does not verify: {}", complaints.str());
  }
  codegen::set_target(module, machine);
  if (!dump.empty()) codegen::write_text(module, dump + ".before.ll");
  codegen::optimize(module, machine, add_passes);
  if (!dump.empty()) codegen::write_text(module, dump + ".ll");
  return {};
}

}  // namespace

Status optimize_for_chip(llvm::Module& module, int32_t compute_capability,
                         const std::string& dump) {
  TENON_ASSIGN(const auto machine, make_machine(module.getTargetTriple(), compute_capability));
  return optimize_on(*machine, module, dump);
}

Result<std::string> ptx_of(llvm::Module& module, int32_t compute_capability,
                           const std::string& dump) {
  TENON_ASSIGN(const auto machine, make_machine(module.getTargetTriple(), compute_capability));
  TENON_TRY(optimize_on(*machine, module, dump));
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager emission;
  if (!codegen::add_emission_passes(*machine, emission, out, llvm::CodeGenFileType::AssemblyFile)) {
    return internal_error("gpu: LLVM cannot write PTX");
  }
  emission.run(module);
  return std::string(text.begin(), text.end());
}

Result<std::vector<std::string>> PtxAssembler::assemble(llvm::Module& module) {
  const std::string dump = codegen::next_dump("TENON_GPU_DUMP");
  const auto write = [&](const char* ending, const std::string& bytes) {
    if (!dump.empty()) static_cast<void>(write_file(dump + ending, bytes));
  };
  TENON_ASSIGN(std::string ptx, ptx_of(module, compute_capability_, dump));
  write(".ptx", ptx);
  no_cubin_ = {};
  if (ptxas_.empty()) {
    no_cubin_ = Status(ErrorCode::kNotFound, "there is no ptxas");
    return std::vector{std::move(ptx)};
  }
  auto cubin = run_ptxas(ptxas_, ptx, compute_capability_);
  write(".txt", cubin ? cubin->report : cubin.error().message());
  if (!cubin) {
    no_cubin_ = cubin.error();
    return std::vector{std::move(ptx)};
  }
  write(".cubin", cubin->bytes);
  return std::vector{std::move(cubin->bytes), std::move(ptx)};
}

}  // namespace tenon::gpu
