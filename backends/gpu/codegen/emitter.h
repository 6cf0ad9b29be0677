// backends/gpu/codegen/: LLVM IR and PTX of one kernel for NVIDIA GPUs.
//
// Compiles a kernel to a function of LLVM IR for a GPU: a block of threads runs a workgroup
// (docs/gpu.md). Every thread computes the statements outside lanes loops, so that it has all
// values; lanes loops and reductions over lanes are distributed over the threads, and barriers are
// placed where a thread needs a value that another one stored.
//
// Inside a lanes loop a thread may take a run of adjacent iterations at once (runs.h): a value that
// is not the same for the whole run is then a list of scalars, and a load or store of the whole
// list is one access.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/codegen/block_plan.h"
#include "backends/llvm/kernel_emitter.h"

namespace tenon::gpu {

/// A kernel's function and the data that a launch of it needs.
struct GpuKernelFunction {
  llvm::Function* function = nullptr;
  uint32_t threads = kWarp;
  int64_t shared_bytes = 0;
  int64_t private_bytes = 0;  ///< Per thread.
};

/// A value in LLVM IR: one scalar, or one for each iteration of a run.
using RunValues = llvm::SmallVector<llvm::Value*, 1>;

class GpuKernelEmitter : private codegen::KernelEmitter<RunValues> {
 public:
  /// `kernel` must be legal for gpu_features() and verified.
  GpuKernelEmitter(llvm::Module& module, const kernel::Kernel& kernel);

  GpuKernelFunction run(const std::string& name);

 private:
  // --- emitter.cpp: values, operations, blocks, the function
  void make_function(const std::string& name);
  void make_shared_memory(const std::string& name);
  void grid_indices();
  Value* special(llvm::Intrinsic::ID id, uint64_t below);
  RunValues form_of(Value* scalar) override { return {scalar}; }
  RunValues index_from(Value* place) override;
  Value* number(llvm::Type* type, int64_t value) {
    return llvm::ConstantInt::getSigned(type, value);
  }
  /// The number of scalars that represent a value.
  size_t width_of(kernel::ValueId value) const;
  /// The only scalar of a value, or the scalar of iteration `i` of the run.
  Value* scalar(kernel::ValueId value, size_t i = 0);
  /// Concatenate lists of scalars, each with width_of() the value for which it stands; and the
  /// reverse.
  codegen::LlvmValues flatten(const Ids& like, const Many& lists) override;
  Many unflatten(const Ids& like, const codegen::LlvmValues& values) override;
  void operation(const kernel::Node& n) override;
  Value* remainder(ElementType type, Value* x, Value* y);

  // --- emit_control.cpp
  void for_loop(const kernel::Node& n) override;
  void while_loop(const kernel::Node& n) override;
  void if_else(const kernel::Node& n) override;
  bool touches_private(kernel::BlockId id) const;
  bool names_private(const kernel::Node& n) const;
  bool indexes_private(kernel::BlockId id, std::set<kernel::ValueId>& values) const;
  bool is_unrolled(const kernel::Node& n) const;
  int64_t unrolled_size(kernel::BlockId id) const;
  /// The iteration count of a `for` whose bounds are constants; else nothing.
  std::optional<int64_t> turns_of(const kernel::Node& n) const;

  // --- emit_lanes.cpp
  bool outside() const { return !in_lanes_; }
  /// Emits a barrier if a statement with these accesses needs one before it, and records them.
  void touch(const AccessSummary& touched);
  void barrier();
  /// Runs body() on thread 0 only.
  void as_first(const std::function<void()>& body);
  void lanes(const kernel::Node& n) override;
  /// Loops over this thread's runs of the iterations of `n`, with the indices set: body(turn,
  /// carried) returns the values carried to the next run.
  std::vector<Value*> own_runs(
      const kernel::Node& n, const AccessRuns& runs, const std::vector<Value*>& inits,
      bool unrolled,
      const std::function<std::vector<Value*>(Value* turn, const std::vector<Value*>&)>& body);

  // --- emit_reduce.cpp
  void reduce(const kernel::Node& n) override;
  llvm::IntegerType* counter_type(int64_t extent) override {
    return extent < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
  }
  void reduce_over_lanes(const kernel::Node& n);
  /// Partial results of a thread whose iterations are strided, or a contiguous run in order.
  std::vector<Value*> strided_partials(const kernel::Node& n);
  std::vector<Value*> ordered_partials(const kernel::Node& n);
  std::vector<Value*> within_warps(const kernel::Node& n, std::vector<Value*> partials,
                                   int64_t active);
  std::vector<Value*> between_warps(const kernel::Node& n, const std::vector<Value*>& partials,
                                    int64_t warps);
  Value* shuffle(llvm::Intrinsic::ID id, Value* value, uint32_t lane);
  std::vector<Value*> shuffle(llvm::Intrinsic::ID id, const std::vector<Value*>& values,
                              uint32_t lane);
  /// The place in shared memory of result `k` of a warp.
  Value* partial_place(const kernel::Node& n, size_t k, Value* warp);
  void store_partials(const kernel::Node& n, const std::vector<Value*>& partials, Value* warp);
  std::vector<Value*> load_partials(const kernel::Node& n, Value* warp);
  /// `combine` if `condition`, else `otherwise`: values that belong to no element are not combined
  /// if that might not terminate.
  std::vector<Value*> combine_if(Value* condition, const std::vector<Value*>& otherwise,
                                 const kernel::Node& n, const std::vector<Value*>& left,
                                 const std::vector<Value*>& right);
  /// Combines the values of single iterations, also within a run.
  std::vector<Value*> combine_scalars(const kernel::Node& n, const std::vector<Value*>& left,
                                      const std::vector<Value*>& right);

  // --- emit_scan.cpp
  void scan(const kernel::Node& n) override;
  class LaneScan;

  // --- emit_memory.cpp
  void declare(kernel::MemoryId memory) override;
  Value* shared_place(int64_t offset);
  /// The address of the element of iteration `i` of a run.
  Value* address(kernel::MemoryId memory, const Ids& indices, size_t first, size_t i = 0);
  void load(const kernel::Node& n) override;
  void store(const kernel::Node& n) override;
  void atomic(const kernel::Node& n) override;
  llvm::FixedVectorType* run_type(ElementType type) const;
  llvm::Type* access_type(ElementType type);

  BlockPlan plan_;
  llvm::GlobalVariable* shared_ = nullptr;
  Value* thread_ = nullptr;  // Its 32-bit index in the block.

  // The emitter's current state.
  bool in_lanes_ = false;
  const AccessRuns* runs_ = nullptr;  // Null: one iteration at a time.
  Value* turn_ = nullptr;             // Index of this thread's iteration of the lanes loop.
  AccessSummary touched_;             // Since the last barrier.
};

}  // namespace tenon::gpu
