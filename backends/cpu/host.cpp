#include "backends/cpu/host.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

namespace tenon::cpu {
namespace {

// What the emitter leaves: places on the stack that are values, repeated arithmetic on indices,
// calls of small kernels. Vectors are explicit, so nothing looks for them.
constexpr const char* kPasses =
    "cgscc(inline),function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm<allowspeculation>),early-cse,simplifycfg)";

Host find_host() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Host found;
  found.triple = llvm::sys::getProcessTriple();
  found.cpu = llvm::sys::getHostCPUName().str();
  llvm::SubtargetFeatures features;
  const llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  for (const auto& feature : has) features.AddFeature(feature.first(), feature.second);
  found.features = features.getString();
  const auto with = [&](const char* name) { return has.lookup(name); };
  found.vector_bytes = with("avx512f") && with("avx512vl") && with("avx512bw") ? 64
                       : with("avx2")                                          ? 32
                                                                               : 16;
  return found;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  const llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, kPasses));
  passes.run(module, modules);
}

}  // namespace

const Host& host() {
  static const Host found = find_host();
  return found;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine() {
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(host().triple, error);
  if (target == nullptr) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // K8
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      host().triple, host().cpu, host().features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
}

Result<std::string> compile_to_object(llvm::Module& module, llvm::TargetMachine& machine) {
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  if (llvm::verifyModule(module, &complaints)) {
    return internal_error("cpu: the module does not verify: {}", complaints.str());
  }
  optimize(module, machine);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return internal_error("cpu: LLVM cannot write objects for {}", host().triple);
  }
  emission.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace tenon::cpu
