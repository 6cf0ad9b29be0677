// The machine that this process runs on, as a target of LLVM.
//
// Thread-safety: all of it from any thread.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "core/types/status.h"

namespace llvm {
class TargetMachine;
}

namespace tenon::cpu {

struct Host {
  std::string triple;
  std::string cpu;       ///< "znver4"
  std::string features;  ///< "+avx2,-avx512f,…"
  int64_t vector_bytes;  ///< Of a register.
};

/// Found once.
const Host& host();

/// A machine of its own for a thread; null if LLVM has no such target.
std::unique_ptr<llvm::TargetMachine> make_target_machine();

/// Runs the passes and generates code: an object file. The module is changed. With the folder
/// TENON_CPU_DUMP, the module before and after the passes and the object are written there.
Result<std::string> compile_to_object(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tenon::cpu
