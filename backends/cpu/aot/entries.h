// The functions and the table of a model that tenon_aot.h declares to C, as LLVM IR.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/cpu/aot/aot.h"
#include "backends/cpu/compiling.h"

namespace tenon::cpu {

/// Where the constants of a function are.
struct ConstantPlaces {
  std::vector<llvm::Constant*> addresses;  ///< Null for those in the file.
  std::vector<int64_t> offsets;            ///< In the file; -1 for the others.
};

/// The inputs of emit_entry().
struct EntrySource {
  const AotFunction& function;
  const AotOptions& options;
  const ConstantPlaces& constants;
  llvm::Function* body = nullptr;  ///< An Entry.
  int64_t scratch_bytes = 0;       ///< For one thread.
};

/// The symbols "NAME_FUNCTION" and "NAME_FUNCTION_run".
std::string entry_symbol(const AotOptions& options, const AotFunction& function);

/// Whether the C function takes a context, and whether it has an outcome.
bool takes_context(const AotOptions& options);
bool has_outcome(const AotOptions& options);

/// Emits int32_t NAME_FUNCTION_run(void* const* arrays, void* arena, const tenon_aot_context*), and
/// NAME_FUNCTION, which takes the arrays one by one.
AotEntry emit_entry(llvm::Module& module, const EntrySource& source);

/// Defines kTaskFunction, by which large kernels run, as a call of the context's parallel_for.
void emit_task_function(llvm::Module& module, int64_t scratch_bytes);

/// Emits the constant NAME_model of the type tenon_aot_model.
void emit_descriptor(llvm::Module& module, std::span<const AotFunction> functions,
                     const AotOptions& options, const AotModel& model);

}  // namespace tenon::cpu
