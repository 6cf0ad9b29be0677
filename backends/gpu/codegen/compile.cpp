#include "backends/gpu/codegen/compile.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>

#include <algorithm>
#include <cctype>

#include "backends/gpu/codegen/emitter.h"
#include "backends/gpu_compiler_hash.h"
#include "backends/llvm/host.h"
#include "core/base/archive.h"
#include "core/base/sealed.h"
#include "core/types/serial.h"

namespace tenon::gpu {

template <class A>
void serialize(A& a, serial::Of<A, GpuKernelCode>& code) {
  a(code.symbol, code.blocks, code.threads, code.buffers, code.scalars);
}
template <class A>
void serialize(A& a, serial::Of<A, SegmentPlace>& place) {
  a(place.memory, place.offset);
}
template <class A>
void serialize(A& a, serial::Of<A, SegmentLaunch>& launch) {
  a(launch.kernel, launch.buffers, launch.scalars);
}
template <class A>
void serialize(A& a, serial::Of<A, SegmentLoop>& loop) {
  a(loop.condition, loop.body, loop.predicate);
}
template <class A>
void serialize(A& a, serial::Of<A, SegmentChoice>& choice) {
  a(choice.index, choice.is_pred, choice.branches);
}
template <class A>
void serialize(A& a, serial::Of<A, GpuCode>& code) {
  a(code.images, code.kernels, code.segment.memories, code.segment.sequences);
}

namespace {

using backend::Declined;
using backend::Reason;

constexpr serial::Format kCodeFormat = {"TNGP", "binary of gpu", 2, 2};

// The triple of LLVM's target, which may be missing when only the simulator is used.
constexpr const char* kTriple = "nvptx64-nvidia-cuda";
constexpr const char* kLayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64";

// Parameters have 4 KiB, with at most 8 bytes each.
constexpr size_t kMostParameters = 512;
// Arrays of a thread must fit its registers: 255 of 4 bytes.
constexpr int64_t kMostPrivateBytes = 640;
// Shared memory per block without a special request to the driver.
constexpr int64_t kSharedBytes = 48 << 10;

// The number makes the symbol unique; the name is only for people.
std::string symbol_of(const kernel::Kernel& kernel, size_t number) {
  constexpr size_t kLongest = 60;
  std::string symbol = fmt::format("tenon_{}_", number);
  for (const char c : kernel.name.substr(0, kLongest)) {
    symbol += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return symbol;
}

std::vector<Declined> declined_of(const kernel::Kernel& kernel, const GpuKernelFunction& made,
                                  const backend::TargetInfo& target, uint32_t number) {
  const auto decline = [&](Reason reason, std::string text) {
    return std::vector<Declined>{{number, reason, std::move(text)}};
  };
  if (made.shared_bytes > target.scratch_bytes) {
    return decline(Reason::kTooMuchScratch,
                   fmt::format("@{} needs {} bytes of shared memory, a block has {}", kernel.name,
                               made.shared_bytes, target.scratch_bytes));
  }
  if (made.private_bytes > kMostPrivateBytes) {
    return decline(Reason::kTooMuchPrivate,
                   fmt::format("@{} needs {} bytes a thread of private memory, registers hold {}",
                               kernel.name, made.private_bytes, kMostPrivateBytes));
  }
  const size_t parameters = kernel.buffer_count + kernel.scalars.size();
  if (parameters > kMostParameters) {
    return decline(Reason::kTooManyParameters,
                   fmt::format("@{} has {} parameters, a launch {}", kernel.name, parameters,
                               kMostParameters));
  }
  return {};
}

}  // namespace

kernel::TargetFeatures gpu_features() {
  using enum ElementType;
  kernel::TargetFeatures form;
  for (const ElementType type : {kS8, kS16, kS64, kU8, kU16, kU64, kF64}) {
    form.computed.insert(type);
  }
  form.atomics = {kS32, kU32, kS64, kU64};
  form.converted.insert(kBF16);
  // Every GPU converts f16; the simulator runs the same kernels on the host.
  if (codegen::host().converts_half) form.converted.insert(kF16);
  form.private_memory = true;
  form.scans = true;
  return form;
}

backend::TargetInfo target_of_gpu(int32_t compute_capability) {
  backend::TargetInfo target;
  target.name = fmt::format("sm_{}", compute_capability);
  target.compiler_id =
      fmt::format("gpu {} llvm {} sm_{}", kCompilerHash, LLVM_VERSION_STRING, compute_capability);
  target.features = gpu_features();
  target.preferred_lanes = kMostThreads;
  target.vector_bytes = 16;
  target.scratch_bytes = kSharedBytes;
  target.private_bytes = kMostPrivateBytes;
  target.most_parameters = kMostParameters;
  target.spaces[0].alignment = 256;
  return target;
}

std::vector<Declined> emit_kernels(llvm::Module& module, const backend::TargetInfo& target,
                                   backend::Kernels kernels, GpuCode& code) {
  module.setTargetTriple(kTriple);
  module.setDataLayout(kLayout);
  std::vector<Declined> declined;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const kernel::Kernel& kernel = *kernels[k];
    GpuKernelCode& made = code.kernels.emplace_back();
    made.symbol = symbol_of(kernel, k);
    const GpuKernelFunction function = GpuKernelEmitter(module, kernel).run(made.symbol);
    made.blocks = element_count(kernel.grid);
    made.threads = function.threads;
    for (size_t b = 0; b < kernel.buffer_count; ++b) {
      made.buffers.push_back(kernel.memories[b].bytes());
    }
    for (const kernel::ValueId each : kernel.scalars) {
      made.scalars.push_back(kernel.value(each).type);
    }
    for (Declined& each : declined_of(kernel, function, target, static_cast<uint32_t>(k))) {
      declined.push_back(std::move(each));
    }
  }
  return declined;
}

Result<CompiledKernels> compile(const backend::TargetInfo& target, backend::Kernels kernels,
                                Assembler& assembler) {
  llvm::LLVMContext context;
  llvm::Module module("tenon", context);
  CompiledKernels compiled;
  compiled.declined = emit_kernels(module, target, kernels, compiled.code);
  if (compiled.declined.empty()) {
    TENON_ASSIGN(compiled.code.images, assembler.assemble(module));
  }
  return compiled;
}

std::string save(const GpuCode& code) { return serial::save_sealed(kCodeFormat, code); }

Result<GpuCode> load_code(std::string_view bytes) {
  return serial::load_sealed<GpuCode>(kCodeFormat, bytes);
}

}  // namespace tenon::gpu
