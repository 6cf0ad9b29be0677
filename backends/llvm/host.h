// Machines as LLVM targets, that which runs this process among them, and compilation for them.
//
// Thread-safety: all functions may be called from any thread; a module and a machine from one at a
// time.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Support/CodeGen.h>

#include <memory>
#include <string>

#include "core/base/status.h"

namespace llvm {
class TargetMachine;
class raw_pwrite_stream;
namespace legacy {
class PassManager;
}
}  // namespace llvm

namespace tenon::codegen {

struct TargetCpu {
  std::string triple;
  std::string cpu;              ///< "znver4"
  std::string features;         ///< "+avx2,-avx512f,…"
  int64_t vector_bytes = 16;    ///< Size of a vector register.
  bool fused = true;            ///< fma is an instruction, not a call.
  bool converts_half = true;    ///< So are conversions of f16.
  bool multiplies_two = false;  ///< It begins two fma of the widest vectors at a time, of 64 bytes.
  bool tiles = false;           ///< AMX of bf16 and bytes, which the process may use: host() alone.
  bool dots_words = false;      ///< AVX512-VNNI, with wide registers.
};

/// Detected once, without the matrix units that TENON_CPU_WITHOUT lists ("tiles,dots").
const TargetCpu& host();

/// The processor `cpu` ("native": this one; "x86-64-v3", "skylake") with the further features of
/// a list as in TargetCpu. Empty: the triple of this process, or the least processor of the triple.
/// Errors: kUnimplemented if this LLVM has no such target, kInvalidArgument for a processor or a
/// feature that it does not know.
Result<TargetCpu> target_cpu(std::string triple, std::string cpu, const std::string& features);

/// Whether a machine with these features, as in TargetCpu, has an fma instruction. All except x86
/// do.
bool has_fma(std::string_view triple, std::string_view features);

/// Whether it has instructions for conversions between f16 and f32. All except x86 do.
bool converts_half(std::string_view triple, std::string_view features);

/// The machine that the calling thread compiles with, one module after the other: LLVM reads the
/// features of the processor once for each. Errors: kUnimplemented if LLVM has no such target.
Result<llvm::TargetMachine*> host_machine();

/// A machine that makes objects for a linker: each function and constant has a section of its own.
Result<std::unique_ptr<llvm::TargetMachine>> make_object_machine(const TargetCpu& cpu);

/// Sets the module's triple and data layout to those of `machine`.
void set_target(llvm::Module& module, const llvm::TargetMachine& machine);

/// Inlines calls, and runs the passes that `add_passes` adds on each function.
void optimize(llvm::Module& module, llvm::TargetMachine& machine,
              void (*add_passes)(llvm::FunctionPassManager& passes));

/// Adds the passes that write code of `type` to `out`; false if the machine has no such output. On
/// x86, whose addresses are sums of two registers, without LLVM's loop strength reduction: it took
/// up to half of the time of a compilation, and the code was not faster. Thread-safe.
bool add_emission_passes(llvm::TargetMachine& machine, llvm::legacy::PassManager& passes,
                         llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type);

/// Verifies the module, runs the passes for explicitly vectorised code, and generates code: an
/// object file. Modifies the module. With `dump`, the module before and after the passes and the
/// object are written to files with that name and a suffix.
Result<std::string> compile_to_object(llvm::Module& module, llvm::TargetMachine& machine,
                                      const std::string& dump = "");

/// FOLDER/0, FOLDER/1 … in the folder that the environment variable names; empty if it is not set.
std::string next_dump(const char* variable);
/// Writes a module's text to a file, for people; errors are ignored.
void write_text(const llvm::Module& module, const std::string& path);

}  // namespace tenon::codegen
