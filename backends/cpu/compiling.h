// Functions shared by the compilation of kernels and of segments.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <memory>

#include "backends/cpu/code.h"
#include "backends/cpu/contraction/contraction.h"

namespace tenon::cpu {

inline constexpr const char* kSegmentSymbol = "tenon_segment";
/// The name by which generated code calls run_tasks() of tasks.h.
inline constexpr const char* kTaskFunction = "tenon_run_tasks";

struct EmittedKernel {
  CpuKernelCode code;
  llvm::Function* function = nullptr;  ///< The function of emitter.h, named direct_symbol().
};

/// The symbol of a kernel's function that takes its buffers one by one.
std::string direct_symbol(size_t number);
/// The data known about a kernel before it is compiled: everything except its scratch memory.
CpuKernelCode describe(const kernel::Kernel& kernel, size_t number);
/// The type Entry in LLVM IR.
llvm::FunctionType* entry_type(llvm::LLVMContext& context);
/// A function of the type Entry, without a body.
llvm::Function* make_entry_function(llvm::Module& module, const std::string& symbol);
/// Makes an Entry function with the name `symbol` that calls `function`, which takes `buffers`
/// buffers, scalars of those types, and the other arguments one by one.
void make_entry(llvm::Module& module, llvm::Function* function, size_t buffers,
                const std::vector<ElementType>& scalars, const std::string& symbol);
/// Emits both functions of a kernel.
EmittedKernel emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, size_t number,
                          int64_t vector_bytes);
/// An i1 that is true while neither of the two words at `stops` requests the end of the work.
llvm::Value* emit_poll(llvm::IRBuilderBase& builder, llvm::Value* stops);

/// Separate code for a contraction: an object, with a kernel CpuKernelCode::symbol and its direct
/// function direct_symbol_of(). Some results are cached in the process for equal contractions.
Result<std::shared_ptr<const CpuCode>> contraction_code(const ContractionLoops& loops);
std::string direct_symbol_of(const std::string& contraction);
/// Compiles such code without the cache, for vectors of `vector_bytes`; `name` is the kernel's
/// name.
Result<CpuCode> compile_contraction(const ContractionLoops& loops, const std::string& name,
                                    int64_t vector_bytes);

inline constexpr size_t kKernelsAnObject = 8;
/// Compiles `count` items into objects on several threads, `an_object` items per object; `emit`
/// emits one item into a module.
Result<std::vector<std::string>> compile_objects(
    size_t count, const std::function<void(llvm::Module&, size_t)>& emit,
    size_t an_object = kKernelsAnObject);

}  // namespace tenon::cpu
