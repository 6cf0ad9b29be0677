// Functions shared by the compilation of kernels and of segments.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <memory>

#include "backends/cpu/code.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/llvm/host.h"

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
/// An i1 that is true while neither of the two words at `stops` requests the end of the work; a
/// constant in a module of code that nothing stops.
llvm::Value* emit_poll(llvm::IRBuilderBase& builder, llvm::Value* stops);
/// States that nothing stops the code of the module.
void mark_unstoppable(llvm::Module& module);

/// Separate code for a contraction: an object, with a kernel CpuKernelCode::symbol and its direct
/// function direct_symbol_of(). Some results are cached in the process for equal contractions.
Result<std::shared_ptr<const CpuCode>> contraction_code(const ContractionLoops& loops);
std::string direct_symbol_of(const std::string& contraction);
/// The loops of a library call for which there is such code on `cpu`.
std::optional<ContractionLoops> contraction_loops_of(const codegen::TargetCpu& cpu,
                                                     const program::LibraryCall& call,
                                                     std::span<const Shape> operands,
                                                     const Shape& result);
/// Compiles such code without the cache, for vectors of `vector_bytes`; `name` is the kernel's
/// name.
Result<CpuCode> compile_contraction(const ContractionLoops& loops, const std::string& name,
                                    int64_t vector_bytes);

/// Emits the function direct_symbol_of(symbol) and the Entry of such code; its objects are in the
/// module.
CpuKernelCode emit_contraction_code(llvm::Module& module, const ContractionLoops& loops,
                                    const std::string& name, int64_t vector_bytes);

/// The target features of a processor; kernels do not use fma where it would be a call.
kernel::TargetFeatures features_of(const codegen::TargetCpu& cpu);

/// How a whole Program becomes functions of one module (aot/).
struct SegmentEmission {
  codegen::TargetCpu cpu;
  std::string symbol;       ///< The name of its Entry function.
  size_t first_number = 0;  ///< Numbers its kernels and parts: the module may have other Programs.
  bool has_tasks = false;   ///< Large kernels are called through kTaskFunction.
  /// For each constant of the Program, its address; null: in memory, as for compile_segment.
  std::vector<llvm::Constant*> constants;
  /// By target: the numbers of the custom calls that the Program may make, in the array of
  /// ContextSlot::kCalls.
  std::map<std::string, size_t, std::less<>> calls;
  /// The contractions that the module has, by name.
  std::map<std::string, std::shared_ptr<const CpuCode>>* contractions = nullptr;
};

/// An emitted Program.
struct EmittedSegment {
  llvm::Function* function = nullptr;  ///< An Entry.
  int64_t scratch_bytes = 0;
  size_t next_number = 0;  ///< The first number of SegmentEmission that is free.
};

/// The pointers to which `stops` of a function points: the words that stop it; in a Program with
/// custom calls, also those that they need.
enum class ContextSlot : uint64_t {
  kStop,
  kSecondStop,
  kCalls,
  kUser,
  kStatus,
  kParallelFor,
  kPool,
  kScratch
};
inline constexpr size_t kContextSlots = 8;

/// Emits a Program whose kernels are legal for the target into `module`. The functions are those of
/// compile_segment; each contraction is emitted once per module.
EmittedSegment emit_segment(llvm::Module& module, const program::Program& program,
                            const SegmentEmission& emission);

inline constexpr size_t kKernelsAnObject = 8;
/// Compiles `count` items into objects on several threads, `an_object` items per object; `emit`
/// emits one item into a module.
Result<std::vector<std::string>> compile_objects(
    size_t count, const std::function<void(llvm::Module&, size_t)>& emit,
    size_t an_object = kKernelsAnObject);

}  // namespace tenon::cpu
