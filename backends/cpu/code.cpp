#include "backends/cpu/code.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/compiling.h"
#include "backends/cpu/contraction/tiling.h"
#include "backends/llvm/host.h"
#include "backends/llvm/operations.h"
#include "backends/support/parallel.h"
#include "core/base/digest.h"
#include "core/base/sealed.h"
#include "core/kernel/analysis/cost.h"
#include "core/kernel/transform/split_lanes.h"

namespace tenon::cpu {

template <class A>
void serialize(A& a, serial::Of<A, CpuKernelCode>& code) {
  a(code.symbol, code.workgroups, code.scratch_bytes, code.grain, code.nanoseconds, code.buffers,
    code.scalars);
}
template <class A>
void serialize(A& a, serial::Of<A, CpuCode>& code) {
  a(code.objects, code.kernels);
}

namespace {

constexpr serial::Format kCodeFormat = {"TNCP", "binary of cpu", 2, 2};
constexpr std::string_view kEntrySuffix =
    ".entry";  // Suffix of the symbol of a contraction's Entry function.

double nanoseconds_of(const kernel::Kernel& kernel) {
  const kernel::Cost cost = kernel::cost_of(kernel);
  // Sorts and random numbers are hardly any flops.
  return std::max(cost.flops / 8 + cost.transcendentals * 2, cost.operations / 32) +
         static_cast<double>(cost.bytes_read + cost.bytes_written) / 8;
}

}  // namespace

int64_t grain_of(double nanoseconds, int64_t workgroups) {
  // Shorter work does not gain from several threads: a step of an LSTM, whose kernels are estimated
  // at 20 to 100 us, was no faster on two threads.
  constexpr double kWorthSeveral = 100'000;
  constexpr double kTask = 20'000;
  if (nanoseconds < kWorthSeveral || workgroups < 2) return workgroups;
  const double each = nanoseconds / static_cast<double>(workgroups);
  return static_cast<int64_t>(std::clamp(kTask / each, 1.0, static_cast<double>(workgroups)));
}

std::string direct_symbol(size_t number) { return fmt::format("tenon_direct_{}", number); }

llvm::FunctionType* entry_type(llvm::LLVMContext& context) {
  llvm::Type* const pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* const number = llvm::Type::getInt64Ty(context);
  llvm::Type* const types[] = {pointer, pointer, number, number, pointer, pointer};
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
}

llvm::Function* make_entry_function(llvm::Module& module, const std::string& symbol) {
  llvm::Function* const entry = llvm::Function::Create(
      entry_type(module.getContext()), llvm::Function::ExternalLinkage, symbol, module);
  entry->setDoesNotThrow();
  return entry;
}

namespace {
constexpr const char* kUnstoppable = "tenon.unstoppable";  // Metadata of a module.
}

void mark_unstoppable(llvm::Module& module) { module.getOrInsertNamedMetadata(kUnstoppable); }

llvm::Value* emit_poll(llvm::IRBuilderBase& b, llvm::Value* stops) {
  const llvm::Module& module = *b.GetInsertBlock()->getModule();
  if (module.getNamedMetadata(kUnstoppable) != nullptr) return b.getTrue();
  llvm::Value* words = b.getInt32(0);
  for (uint64_t i = 0; i < 2; ++i) {
    llvm::Value* const place =
        b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), stops, i));
    words = b.CreateOr(words, b.CreateLoad(b.getInt32Ty(), place, /*isVolatile=*/true));
  }
  return b.CreateICmpEQ(words, b.getInt32(0));
}

void make_entry(llvm::Module& module, llvm::Function* function, size_t buffers,
                const std::vector<ElementType>& scalars, const std::string& symbol) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Function* const entry = make_entry_function(module, symbol);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
  std::vector<llvm::Value*> arguments;
  for (size_t i = 0; i < buffers; ++i) {
    arguments.push_back(
        b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), entry->getArg(0), i)));
  }
  for (size_t i = 0; i < scalars.size(); ++i) {
    const ElementType type = scalars[i];
    llvm::Value* const bits = b.CreateTrunc(
        b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), entry->getArg(1), i)),
        b.getIntNTy(static_cast<unsigned>(bit_width(type))));
    arguments.push_back(b.CreateBitCast(bits, codegen::type_of(context, type)));
  }
  for (unsigned i = 2; i < 6; ++i) arguments.push_back(entry->getArg(i));
  b.CreateCall(function, arguments)->setIsNoInline();  // So that the code exists once, not twice.
  b.CreateRetVoid();
}

CpuKernelCode describe(const kernel::Kernel& kernel, size_t number) {
  CpuKernelCode code;
  code.symbol = fmt::format("tenon_kernel_{}", number);
  code.workgroups = element_count(kernel.grid);
  code.nanoseconds = nanoseconds_of(kernel);
  code.grain = grain_of(code.nanoseconds, code.workgroups);
  for (size_t i = 0; i < kernel.buffer_count; ++i) {
    code.buffers.push_back(kernel.memories[i].bytes());
  }
  code.scalars = static_cast<uint32_t>(kernel.scalars.size());
  return code;
}

namespace {
constexpr int64_t kLeastSplitVector = 32;
constexpr int64_t kShortRow = 32;  // Within such rows conditions are constant masks.
}  // namespace

EmittedKernel emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, size_t number,
                          int64_t vector_bytes) {
  EmittedKernel emitted;
  CpuKernelCode& code = emitted.code;
  code = describe(kernel, number);
  const kernel::Kernel split =
      vector_bytes >= kLeastSplitVector ? kernel::split_lanes(kernel, kShortRow) : kernel;
  const kernel::Kernel tiled = with_native_tiles(split, vector_bytes);
  const CpuKernelFunction made =
      CpuKernelEmitter(module, tiled, vector_bytes).run(direct_symbol(number));
  code.scratch_bytes = made.scratch_bytes;
  emitted.function = made.function;
  std::vector<ElementType> scalars;
  for (const kernel::ValueId each : kernel.scalars) scalars.push_back(kernel.value(each).type);
  make_entry(module, made.function, kernel.buffer_count, scalars, code.symbol);
  return emitted;
}

namespace {

// Both functions of a contraction, called `name` and `name`.entry, for about `threads` threads.
EmittedKernel emit_contraction_kernel(llvm::Module& module, const ContractionLoops& loops,
                                      const std::string& name, int64_t vector_bytes,
                                      int64_t threads) {
  const ContractionFunction made = emit_contraction(module, loops, name, vector_bytes);
  EmittedKernel emitted;
  emitted.function = made.kernel.function;
  CpuKernelCode& code = emitted.code;
  code.symbol = fmt::format("{}{}", name, kEntrySuffix);
  code.workgroups = made.workgroups;
  code.scratch_bytes = made.kernel.scratch_bytes;
  const double flops_a_nanosecond = has_tiles(loops.unit)                  ? 600
                                    : loops.unit == MatrixUnit::kDotsWords ? 120
                                                                           : 40;
  constexpr double kBytesANanosecond = 20;
  double bytes = 0;
  for (const int64_t each : loops.bytes) bytes += static_cast<double>(each);
  code.nanoseconds =
      std::max(made.flops_a_workgroup * static_cast<double>(made.workgroups) / flops_a_nanosecond,
               bytes / kBytesANanosecond);
  code.grain = grain_of(code.nanoseconds, code.workgroups);
  if (made.joins_workgroups) code.grain = std::max(code.grain, divided(code.workgroups, threads));
  code.buffers = loops.bytes;
  make_entry(module, made.kernel.function, 3, {}, code.symbol);
  return emitted;
}

}  // namespace

CpuKernelCode emit_contraction_code(llvm::Module& module, const ContractionLoops& loops,
                                    const std::string& name, int64_t vector_bytes) {
  constexpr int64_t kThreads = 4;  // Those of the machine that will run it are not known.
  return emit_contraction_kernel(module, loops, name, vector_bytes, kThreads).code;
}

std::string direct_symbol_of(const std::string& contraction) {
  return contraction.substr(0, contraction.size() - kEntrySuffix.size());
}

Result<std::vector<std::string>> compile_objects(
    size_t count, const std::function<void(llvm::Module&, size_t)>& emit, size_t an_object) {
  std::vector<std::string> objects((count + an_object - 1) / an_object);
  std::vector<Status> outcomes(objects.size());
  const auto compile_one = [&](size_t o) -> Status {
    llvm::LLVMContext context;
    TENON_ASSIGN(llvm::TargetMachine* const machine, codegen::host_machine());
    llvm::Module module("tenon", context);
    codegen::set_target(module, *machine);
    const size_t end = std::min(count, (o + 1) * an_object);
    for (size_t i = o * an_object; i < end; ++i) emit(module, i);
    TENON_ASSIGN(objects[o], codegen::compile_to_object(module, *machine,
                                                        codegen::next_dump("TENON_CPU_DUMP")));
    return {};
  };
  parallel_for(static_cast<int64_t>(objects.size()), [&](int64_t i) {
    const auto o = static_cast<size_t>(i);
    outcomes[o] = compile_one(o);
  });
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) return tl::make_unexpected(Status(outcome).with_context("cpu"));
  }
  return objects;
}

kernel::TargetFeatures host_features() {
  kernel::TargetFeatures form = features_of(codegen::host());
  form.fma = true;  // Where there is no instruction, fma is a call.
  return form;
}

kernel::TargetFeatures features_of(const codegen::TargetCpu& cpu) {
  kernel::TargetFeatures form;
  for (const ElementType type :
       {ElementType::kS8, ElementType::kS16, ElementType::kS64, ElementType::kU8, ElementType::kU16,
        ElementType::kU64, ElementType::kF64}) {
    form.computed.insert(type);
  }
  for (const ElementType type :
       {ElementType::kS8, ElementType::kS16, ElementType::kS32, ElementType::kS64, ElementType::kU8,
        ElementType::kU16, ElementType::kU32, ElementType::kU64}) {
    form.atomics.insert(type);
  }
  form.converted.insert(ElementType::kBF16);
  if (cpu.converts_half) form.converted.insert(ElementType::kF16);
  form.math = true;
  form.fma = cpu.fused;
  form.tiles = true;
  form.scans = true;
  form.private_memory = true;  // Belongs to a workgroup, whose lanes are one thread.
  return form;
}

Result<CpuCode> compile_contraction(const ContractionLoops& loops, const std::string& name,
                                    int64_t vector_bytes) {
  // Code for one thread would keep others idle if the cache gave it to a process that has them.
  const int64_t threads = std::max(2, tbb::info::default_concurrency());
  CpuCode code;
  TENON_ASSIGN(
      code.objects, compile_objects(1, [&](llvm::Module& module, size_t) {
        code.kernels = {emit_contraction_kernel(module, loops, name, vector_bytes, threads).code};
      }));
  return code;
}

Result<std::shared_ptr<const CpuCode>> contraction_code(const ContractionLoops& loops) {
  constexpr size_t kMostKept = 256;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const CpuCode>> made;
  const std::string key = save(loops);
  {
    const std::lock_guard lock(mutex);
    const auto found = made.find(key);
    if (found != made.end()) return found->second;
  }
  const std::string name = "tenon_contraction_" + serial::digest_of(key);
  TENON_ASSIGN(CpuCode code, compile_contraction(loops, name, codegen::host().vector_bytes));
  auto kept = std::make_shared<const CpuCode>(std::move(code));
  const std::lock_guard lock(mutex);
  if (made.size() >= kMostKept) made.clear();
  made.emplace(key, kept);
  return kept;
}

Result<CpuCode> compile(backend::Kernels kernels, int64_t vector_bytes) {
  if (vector_bytes == 0) vector_bytes = codegen::host().vector_bytes;
  CpuCode code;
  code.kernels.resize(kernels.size());
  TENON_ASSIGN(code.objects, compile_objects(kernels.size(), [&](llvm::Module& module, size_t k) {
                 code.kernels[k] = emit_kernel(module, *kernels[k], k, vector_bytes).code;
               }));
  return code;
}

std::string save(const CpuCode& code) { return serial::save_sealed(kCodeFormat, code); }

Result<CpuCode> load_code(std::string_view bytes) {
  return serial::load_sealed<CpuCode>(kCodeFormat, bytes);
}

}  // namespace tenon::cpu
