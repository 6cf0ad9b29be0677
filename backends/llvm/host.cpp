#include "backends/llvm/host.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/InlineAdvisor.h>
#include <llvm/Analysis/LazyCallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemoryDependenceAnalysis.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PhiValues.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ProfileSummaryInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/TypeBasedAliasAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/IPO/Inliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "backends/llvm/abreast.h"
#include "backends/llvm/masked_memory.h"
#include "core/base/file.h"
#include "core/base/process/environment.h"

namespace tenon::codegen {
namespace {

// The passes clean up after the emitter: stack slots become values, repeated index arithmetic is
// removed, small kernels are inlined. Vectors are explicit, so there is no vectoriser.
void add_passes(llvm::FunctionPassManager& passes) {
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(ExpandMaskedMemoryPass());
  passes.addPass(llvm::SimplifyCFGPass());
}

template <class... Analyses, class Manager>
void register_each(Manager& manager) {
  (manager.registerPass([] { return Analyses(); }), ...);
}

// The analyses of functions that passes ask for. Targets add no alias analysis of their own:
// NVPTX's can be registered by llvm::PassBuilder alone.
void register_analyses(llvm::FunctionAnalysisManager& functions, llvm::TargetMachine& machine) {
  functions.registerPass([&] {
    llvm::AAManager aliases;
    aliases.registerFunctionAnalysis<llvm::BasicAA>();
    aliases.registerFunctionAnalysis<llvm::ScopedNoAliasAA>();
    aliases.registerFunctionAnalysis<llvm::TypeBasedAA>();
    return aliases;
  });
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  functions.registerPass([&] {
    return llvm::TargetLibraryAnalysis(llvm::TargetLibraryInfoImpl(machine.getTargetTriple()));
  });
  register_each<llvm::BasicAA, llvm::ScopedNoAliasAA, llvm::TypeBasedAA, llvm::AssumptionAnalysis,
                llvm::BlockFrequencyAnalysis, llvm::BranchProbabilityAnalysis,
                llvm::DominatorTreeAnalysis, llvm::LoopAnalysis, llvm::MemoryDependenceAnalysis,
                llvm::MemorySSAAnalysis, llvm::OptimizationRemarkEmitterAnalysis,
                llvm::PassInstrumentationAnalysis, llvm::PhiValuesAnalysis,
                llvm::PostDominatorTreeAnalysis, llvm::ScalarEvolutionAnalysis,
                llvm::ShouldNotRunFunctionPassesAnalysis>(functions);
}

// The size of a vector register, where has(NAME) tells of features of x86.
template <class Has>
int64_t vector_bytes_of(const Has& has) {
  return has("avx512f") && has("avx512vl") && has("avx512bw") ? 64 : has("avx2") ? 32 : 16;
}

// Instructions of AMD's processors that LLVM chooses for shuffles of bytes and words, and that have
// no form with AVX: between those that have, each waits for both (rows of bf16 taken apart:
// 30 times the time).
constexpr const char* kWithoutVex = "sse4a";

constexpr const char* kTileFeatures[] = {"amx-tile", "amx-bf16", "amx-int8", "amx-complex",
                                         "amx-fp16"};

// Linux lets a process use registers of tiles if it asks, since signals then store 8 KB more.
bool may_use_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

constexpr const char* kWithoutUnits = "TENON_CPU_WITHOUT";

template <class Has>
void find_products(const Has& has, TargetCpu& cpu) {
  cpu.multiplies_two = cpu.vector_bytes == 64 &&
                       llvm::is_contained({"skylake-avx512", "cascadelake", "cooperlake",
                                           "icelake-server", "sapphirerapids", "emeraldrapids",
                                           "graniterapids", "graniterapids-d", "znver5"},
                                          llvm::StringRef(cpu.cpu));
  cpu.dots_words = cpu.vector_bytes == 64 && has("avx512vnni");
}

TargetCpu find_host() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  TargetCpu found;
  found.triple = llvm::sys::getProcessTriple();
  found.cpu = llvm::sys::getHostCPUName().str();
  llvm::SubtargetFeatures features;
  llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  found.tiles = has.lookup("amx-bf16") && has.lookup("amx-int8") &&
                !environment_lists(kWithoutUnits, "tiles") && may_use_tiles();
  if (!found.tiles) {
    for (const char* name : kTileFeatures) has[name] = false;
  }
  for (const auto& feature : has) {
    features.AddFeature(feature.first(), feature.second && feature.first() != kWithoutVex);
  }
  found.features = features.getString();
  const auto has_feature = [&](const char* name) { return has.lookup(name); };
  found.vector_bytes = vector_bytes_of(has_feature);
  find_products(has_feature, found);
  found.dots_words = found.dots_words && !environment_lists(kWithoutUnits, "dots");
  found.tiles = found.tiles && found.vector_bytes == 64;
  found.fused = has_fma(found.triple, found.features);
  found.converts_half = converts_half(found.triple, found.features);
  return found;
}

// Whether the features include one of `wanted`; true on machines other than x86.
bool has_any(std::string_view triple, std::string_view features,
             std::initializer_list<std::string_view> wanted) {
  if (!llvm::Triple(triple).isX86()) return true;
  const std::string list = fmt::format(",{},", features);
  return std::ranges::any_of(
      wanted, [&](std::string_view name) { return list.find(name) != std::string::npos; });
}

}  // namespace

const TargetCpu& host() {
  static const TargetCpu found = find_host();
  return found;
}

Result<TargetCpu> target_cpu(std::string triple, std::string cpu, const std::string& features) {
  const TargetCpu& here = host();  // The targets are registered with it.
  if (triple.empty()) triple = here.triple;
  TargetCpu found;
  found.triple = llvm::Triple::normalize(triple);
  const bool is_x86 = llvm::Triple(found.triple).getArch() == llvm::Triple::x86_64;
  if (cpu == "native") {
    if (llvm::Triple(found.triple).getArch() != llvm::Triple(here.triple).getArch()) {
      return invalid_argument("the processor native is not one of {}", triple);
    }
    found.cpu = here.cpu;
    found.features = here.features;
  } else {
    found.cpu = cpu.empty() && is_x86 ? "x86-64" : std::move(cpu);
  }
  // The processors of Linux: an empty list would have neither floats nor a multiplication.
  const bool is_least = found.cpu.empty() && features.empty();
  if (llvm::Triple(found.triple).isRISCV64() && is_least) found.features = "+m,+a,+f,+d,+c";
  if (!features.empty()) found.features += (found.features.empty() ? "" : ",") + features;
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(found.triple, error);
  if (target == nullptr) return unimplemented("LLVM has no target {} here", triple);
  const llvm::Triple machine(found.triple);
  if (!machine.isLittleEndian()) {
    return unimplemented("{} is big-endian: arrays and constants are little-endian", triple);
  }
  if (!machine.isOSBinFormatELF()) {
    return unimplemented("{}: objects are written in ELF alone", triple);
  }
  const std::unique_ptr<llvm::MCSubtargetInfo> plain(
      target->createMCSubtargetInfo(found.triple, "", ""));
  if (plain == nullptr) return unimplemented("LLVM has no processors of {} here", triple);
  if (!found.cpu.empty() && !plain->isCPUStringValid(found.cpu)) {
    return invalid_argument("LLVM knows no processor '{}' of {}", found.cpu, triple);
  }
  const llvm::SubtargetFeatures further(features);
  for (const std::string& each : further.getFeatures()) {
    const llvm::StringRef name = llvm::SubtargetFeatures::StripFlag(each);
    if (!llvm::any_of(plain->getAllProcessorFeatures(),
                      [&](const auto& row) { return name == row.Key; })) {
      return invalid_argument("LLVM knows no feature '{}' of {}", name.str(), triple);
    }
  }
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(found.triple, found.cpu, found.features));
  const auto has = [&](const char* name) { return info->checkFeatures(fmt::format("+{}", name)); };
  // The functions that would be called instead are the compiler's, not those of libc and libm.
  if (machine.isRISCV()) {
    found.vector_bytes = has("v") ? 16 : 4;
    found.fused = has("f");
    found.converts_half = has("zfhmin");
  } else if (machine.isARM() || machine.isThumb()) {
    found.vector_bytes = has("neon") ? 16 : 4;
    found.fused = has("vfp4d16sp");
    found.converts_half = false;
  } else if (is_x86) {
    found.vector_bytes = vector_bytes_of(has);
    find_products(has, found);
    found.fused = has("fma") || has("avx512f");
    found.converts_half = has("f16c") || has("avx512f");
    if (has("avx") && has(kWithoutVex)) {
      found.features += fmt::format("{}-{}", found.features.empty() ? "" : ",", kWithoutVex);
    }
  }
  return found;
}

bool has_fma(std::string_view triple, std::string_view features) {
  return has_any(triple, features, {",+fma,", ",+avx512f,"});
}

bool converts_half(std::string_view triple, std::string_view features) {
  return has_any(triple, features, {",+f16c,", ",+avx512f,"});
}

Result<llvm::TargetMachine*> host_machine() {
  thread_local std::unique_ptr<llvm::TargetMachine> made;
  if (made != nullptr) return made.get();
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(host().triple, error);
  if (target == nullptr) return unimplemented("LLVM has no target {}", host().triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // K8
  made.reset(target->createTargetMachine(host().triple, host().cpu, host().features, options,
                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                         llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (made == nullptr) return unimplemented("LLVM makes no machine of {}", host().triple);
  return made.get();
}

Result<std::unique_ptr<llvm::TargetMachine>> make_object_machine(const TargetCpu& cpu) {
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(cpu.triple, error);
  if (target == nullptr) return unimplemented("LLVM has no target {} here", cpu.triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // K8
  options.FunctionSections = true;
  options.DataSections = true;
  const llvm::Triple triple(cpu.triple);
  if (triple.isRISCV()) options.MCOptions.ABIName = triple.isArch64Bit() ? "lp64d" : "ilp32d";
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(cpu.triple, cpu.cpu, cpu.features, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
}

void set_target(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine,
              void (*add_passes)(llvm::FunctionPassManager& passes)) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  loops.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  loops.registerPass([&] { return llvm::FunctionAnalysisManagerLoopProxy(functions); });
  loops.registerPass([] { return llvm::ShouldRunExtraSimpleLoopUnswitch(); });
  register_analyses(functions, machine);
  functions.registerPass([&] { return llvm::LoopAnalysisManagerFunctionProxy(loops); });
  functions.registerPass([&] { return llvm::CGSCCAnalysisManagerFunctionProxy(calls); });
  functions.registerPass([&] { return llvm::ModuleAnalysisManagerFunctionProxy(modules); });
  calls.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  calls.registerPass([] { return llvm::FunctionAnalysisManagerCGSCCProxy(); });
  calls.registerPass([&] { return llvm::ModuleAnalysisManagerCGSCCProxy(modules); });
  modules.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  modules.registerPass([] { return llvm::InlineAdvisorAnalysis(); });
  modules.registerPass([] { return llvm::LazyCallGraphAnalysis(); });
  modules.registerPass([] { return llvm::ProfileSummaryAnalysis(); });
  modules.registerPass([&] { return llvm::FunctionAnalysisManagerModuleProxy(functions); });
  modules.registerPass([&] { return llvm::CGSCCAnalysisManagerModuleProxy(calls); });

  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(llvm::InlinerPass()));
  llvm::FunctionPassManager for_functions;
  add_passes(for_functions);
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(for_functions)));
  passes.run(module, modules);
}

namespace {

// LLVM's own options have no other door. Null if this LLVM has none of that name.
llvm::cl::opt<bool>* option_of_llvm(llvm::StringRef name) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(name);
  return found == options.end() ? nullptr : static_cast<llvm::cl::opt<bool>*>(found->second);
}

}  // namespace

bool add_emission_passes(llvm::TargetMachine& machine, llvm::legacy::PassManager& passes,
                         llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type) {
  heed_abreast();
  static std::mutex mutex;  // The option belongs to the process; it is read while passes are added.
  const std::lock_guard lock(mutex);
  static llvm::cl::opt<bool>* const no_strength_reduction = option_of_llvm("disable-lsr");
  const bool changes = no_strength_reduction != nullptr && machine.getTargetTriple().isX86();
  const bool before = changes && no_strength_reduction->getValue();
  if (changes) no_strength_reduction->setValue(true);
  const bool failed = machine.addPassesToEmitFile(passes, out, nullptr, type);
  if (changes) no_strength_reduction->setValue(before);
  return !failed;
}

Result<std::string> compile_to_object(llvm::Module& module, llvm::TargetMachine& machine,
                                      const std::string& dump) {
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  if (llvm::verifyModule(module, &complaints)) {
    return internal_error("the module does not verify: {}", complaints.str());
  }
  if (!dump.empty()) write_text(module, dump + ".before.ll");
  optimize(module, machine, add_passes);
  if (!dump.empty()) write_text(module, dump + ".ll");
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager emission;
  if (!add_emission_passes(machine, emission, out, llvm::CodeGenFileType::ObjectFile)) {
    return internal_error("LLVM cannot write objects for {}", module.getTargetTriple());
  }
  emission.run(module);
  std::string object(bytes.begin(), bytes.end());
  if (!dump.empty()) static_cast<void>(write_file(dump + ".o", object));
  return object;
}

std::string next_dump(const char* variable) {
  static std::atomic<uint32_t> next = 0;
  const char* folder = std::getenv(variable);
  return folder == nullptr ? "" : fmt::format("{}/{}", folder, next++);
}

void write_text(const llvm::Module& module, const std::string& path) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  static_cast<void>(write_file(path, out.str()));
}

}  // namespace tenon::codegen
