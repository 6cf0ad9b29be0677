// backends/gpu/codegen/: LLVM IR and PTX of one kernel for NVIDIA GPUs.
//
// From a kernel to a function of LLVM IR for a GPU: a block of threads runs a workgroup
// (docs/gpu.md). What stands outside lanes loops every thread computes, so that it knows all
// values; lanes loops and reductions over lanes are shared out among the threads, and barriers
// stand where one needs what another stored.
//
// Inside a lanes loop a thread may take a run of neighbours at once (runs.h): then what is not the
// same for all of the run is a list of scalars, and a load or store of the whole list is one
// access.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/codegen/block_plan.h"
#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::gpu {

/// A kernel's function and what a launch of it needs.
struct GpuKernelFunction {
  llvm::Function* function = nullptr;
  uint32_t threads = kWarp;
  int64_t shared_bytes = 0;
  int64_t private_bytes = 0;  ///< For each thread.
};

class GpuKernelEmitter {
 public:
  /// `kernel` is legal for gpu_features() and has been verified.
  GpuKernelEmitter(llvm::Module& module, const kernel::Kernel& kernel);

  GpuKernelFunction run(const std::string& name);

 private:
  using Value = llvm::Value;
  using BasicBlock = llvm::BasicBlock;

  /// A value in LLVM IR: one scalar, or one for each iteration of a run.
  using Elements = llvm::SmallVector<Value*, 1>;
  using Many = std::vector<Elements>;
  using Ids = std::vector<kernel::ValueId>;

  // --- emitter.cpp: values, operations, blocks, the function
  void make_function(const std::string& name);
  void make_shared_memory(const std::string& name);
  void grid_indices();
  Value* special(llvm::Intrinsic::ID id, uint64_t below);
  /// Sets `indices` to those of position `place` in row-major order.
  void set_indices(const Ids& indices, const Dims& extents, Value* place);
  Value* index_from(Value* number);
  Value* number(llvm::Type* type, int64_t value) {
    return llvm::ConstantInt::getSigned(type, value);
  }
  /// The number of scalars that represent a value.
  size_t width_of(kernel::ValueId value) const;
  /// The only scalar of a value, or that of iteration `i` of the run.
  Value* get(kernel::ValueId value, size_t i = 0);
  Elements elements(kernel::ValueId value);
  Many get(const Ids& values, size_t first = 0);
  void set(const Ids& values, const Many& elements, size_t first = 0);
  /// Concatenate lists of scalars, each with width_of() the value that it is like; and back.
  std::vector<Value*> flatten(const Ids& like, const Many& lists) const;
  Many unflatten(const Ids& like, const std::vector<Value*>& values) const;
  /// Emits the nodes of a block; gives the operands of its yield.
  Many block(kernel::BlockId id);
  void statement(const kernel::Node& n);
  void operation(const kernel::Node& n);
  Value* remainder(ElementType type, Value* x, Value* y);

  // --- emit_control.cpp
  void for_loop(const kernel::Node& n);
  void while_loop(const kernel::Node& n);
  void if_else(const kernel::Node& n);
  /// Runs body() where `condition` holds. The result is that of body(), else `otherwise`.
  std::vector<Value*> where(Value* condition, const std::vector<Value*>& otherwise,
                            const std::function<std::vector<Value*>()>& body);
  bool touches_private(kernel::BlockId id) const;
  bool names_private(const kernel::Node& n) const;
  bool indexes_private(kernel::BlockId id, std::set<kernel::ValueId>& values) const;
  bool is_unrolled(const kernel::Node& n) const;
  int64_t unrolled_size(kernel::BlockId id) const;
  /// The trip count of a `for` whose bounds are constants; else nothing.
  std::optional<int64_t> turns_of(const kernel::Node& n) const;

  // --- emit_lanes.cpp
  bool outside() const { return !in_lanes_; }
  /// Emits a barrier if a statement with these accesses needs one before it, and records them.
  void touch(const AccessSummary& touched);
  void barrier();
  /// Runs body() on thread 0 alone.
  void as_first(const std::function<void()>& body);
  void lanes(const kernel::Node& n);
  /// Loops over this thread's runs of the iterations of `n`, with the indices set: body(turn,
  /// carried) gives the values carried to the next run.
  std::vector<Value*> own_runs(
      const kernel::Node& n, const Runs& runs, const std::vector<Value*>& inits, bool unrolled,
      const std::function<std::vector<Value*>(Value* turn, const std::vector<Value*>&)>& body);

  // --- emit_reduce.cpp
  void reduce(const kernel::Node& n);
  void reduce_serially(const kernel::Node& n);
  void reduce_over_lanes(const kernel::Node& n);
  /// Partial results of a thread that takes iterations far apart, or a run of neighbours in order.
  std::vector<Value*> strided_partials(const kernel::Node& n);
  std::vector<Value*> ordered_partials(const kernel::Node& n);
  std::vector<Value*> within_warps(const kernel::Node& n, std::vector<Value*> partials,
                                   int64_t active);
  std::vector<Value*> between_warps(const kernel::Node& n, const std::vector<Value*>& partials,
                                    int64_t warps);
  Value* shuffle(llvm::Intrinsic::ID id, Value* value, uint32_t lane);
  Many combine(const kernel::Node& n, const Many& left, const Many& right);
  /// `combine` if `condition`, else `otherwise`: values that come from no element are not combined
  /// where that might not terminate.
  std::vector<Value*> combine_if(Value* condition, const std::vector<Value*>& otherwise,
                                 const kernel::Node& n, const std::vector<Value*>& left,
                                 const std::vector<Value*>& right);
  std::vector<Value*> combine(const kernel::Node& n, const std::vector<Value*>& left,
                              const std::vector<Value*>& right);

  // --- emit_memory.cpp
  void declare(kernel::MemoryId memory);
  Value* shared_place(int64_t offset);
  /// The address of the element of iteration `i` of a run.
  Value* address(kernel::MemoryId memory, const Ids& indices, size_t first, size_t i = 0);
  void load(const kernel::Node& n);
  void store(const kernel::Node& n);
  void atomic(const kernel::Node& n);
  llvm::FixedVectorType* run_type(ElementType type) const;
  llvm::Type* access_type(ElementType type);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const kernel::Kernel& kernel_;
  kernel::Ranges ranges_;
  BlockPlan plan_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::GlobalVariable* shared_ = nullptr;
  Value* thread_ = nullptr;  // Its number in the block, of 32 bits.
  std::vector<Elements> values_;
  std::vector<Value*> memories_;

  // The emitter's current state.
  bool in_lanes_ = false;
  const Runs* runs_ = nullptr;  // Null: one iteration at a time.
  Value* turn_ = nullptr;       // The number of this thread's iteration of the lanes loop.
  AccessSummary touched_;       // Since the last barrier.
};

}  // namespace tenon::gpu
