// Compiles kernels to code for a GPU.
//
// Thread-safety: compile() from any thread; an Assembler from one at a time.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/codegen/code.h"
#include "core/backend/backend.h"

namespace llvm {
class Module;
}

namespace tenon::gpu {

/// Generates images from LLVM IR in the form of docs/gpu.md, for a chip or for the simulator.
class Assembler {
 public:
  Assembler() = default;
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;
  virtual ~Assembler() = default;

  /// The images of a module (GpuCode::images); modifies the module.
  virtual Result<std::vector<std::string>> assemble(llvm::Module& module) = 0;
};

/// The target features of a GPU: kernels are legalised for them.
kernel::TargetFeatures gpu_features();

/// The target description that all GPUs of a compute capability (90: sm_90) share. The caller adds
/// what depends on the GPU: memory, multiprocessors, its name.
backend::TargetInfo target_of_gpu(int32_t compute_capability);

/// Code, or the kernels that were declined.
struct CompiledKernels {
  GpuCode code;
  std::vector<backend::Declined> declined;
};

/// Compiles kernels that are legal for gpu_features(). Declines those that need more shared memory
/// than `target` has, more registers than a thread has, or more parameters than a launch takes.
Result<CompiledKernels> compile(const backend::TargetInfo& target, backend::Kernels kernels,
                                Assembler& assembler);

/// Emits kernels into a module with the triple and layout that docs/gpu.md states; sets `code`
/// except for the images. Returns the declined kernels.
std::vector<backend::Declined> emit_kernels(llvm::Module& module, const backend::TargetInfo& target,
                                            backend::Kernels kernels, GpuCode& code);

}  // namespace tenon::gpu
