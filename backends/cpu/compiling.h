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
/// run_tasks() of tasks.h, for code.
inline constexpr const char* kTaskFunction = "tenon_run_tasks";

struct EmittedKernel {
  CpuKernelCode code;
  llvm::Function* function = nullptr;  ///< That of emitter.h, called `direct_symbol`.
};

/// The function of a kernel that takes its buffers one by one.
std::string direct_symbol(size_t number);
/// The facts known about a kernel before it is compiled: all but its scratch memory.
CpuKernelCode describe(const kernel::Kernel& kernel, size_t number);
/// The type Entry, for code.
llvm::FunctionType* entry_type(llvm::LLVMContext& context);
/// A function of the type Entry, without a body.
llvm::Function* make_entry_function(llvm::Module& module, const std::string& symbol);
/// One called `symbol` that calls `function`, which takes so many buffers, scalars of those types,
/// and the rest one by one.
void make_entry(llvm::Module& module, llvm::Function* function, size_t buffers,
                const std::vector<ElementType>& scalars, const std::string& symbol);
/// Both functions of a kernel.
EmittedKernel emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, size_t number,
                          int64_t vector_bytes);
/// Whether neither of the two words at `stops` ends the work.
llvm::Value* emit_poll(llvm::IRBuilderBase& builder, llvm::Value* stops);

/// A contraction as code of its own: an object, and a kernel called CpuKernelCode::symbol whose
/// direct function is called direct_symbol_of() that. Equal ones are compiled once; some are kept
/// for as long as the process.
Result<std::shared_ptr<const CpuCode>> contraction_code(const ContractionLoops& loops);
std::string direct_symbol_of(const std::string& contraction);
/// The same compiled now, its kernel called after `name`, for vectors of so many bytes.
Result<CpuCode> compile_contraction(const ContractionLoops& loops, const std::string& name,
                                    int64_t vector_bytes);

inline constexpr size_t kKernelsAnObject = 8;
/// Objects of `count` things, so many to an object, by several threads; `emit` puts one into a
/// module.
Result<std::vector<std::string>> compile_objects(
    size_t count, const std::function<void(llvm::Module&, size_t)>& emit,
    size_t an_object = kKernelsAnObject);

}  // namespace tenon::cpu
