// Work as a graph of the CUDA driver, which the GPU runs by itself: loops and branches are
// conditional nodes, each with a graph of its own.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/cuda/cuda_api.h"
#include "backends/gpu/driver.h"

namespace tenon::gpu {

/// The kernels that set the condition of a conditional node from memory: PTX that the driver
/// compiles, because only the driver knows the function that sets a condition.
struct CudaConditionKernels {
  CUmodule module = nullptr;
  CUfunction of_loop = nullptr;    ///< (condition, predicate)
  CUfunction of_branch = nullptr;  ///< (condition, index, is_pred, branch, count)
};

/// The context must be current. Errors: the driver's.
Result<CudaConditionKernels> load_condition_kernels(const CudaApi& api);

/// The text of that PTX, for tests.
extern const char* const kCudaConditionPtx;

/// All functions, and the destructor, need the current context with which the graph was made.
/// Thread-safety: one thread at a time.
class CudaGraph {
 public:
  /// `conditions` may be null if the work has no loops and no branches.
  static Result<std::unique_ptr<CudaGraph>> make(const CudaApi& api, CUcontext context,
                                                 const CudaConditionKernels* conditions,
                                                 const GpuWork& work);
  /// The graph may be running: then it is freed when it is done.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Gives launches that follow the arguments of `work`; only those that differ cost time.
  Status update(const GpuWork& work);
  Status launch(CUstream stream);

 private:
  /// A kernel node and the values of its arguments.
  struct KernelNode {
    CUgraphNode node = nullptr;
    CUfunction function = nullptr;
    Grid grid;
    uint32_t threads = 1;
    std::vector<uint64_t> arguments;
  };
  class Maker;

  CudaGraph(const CudaApi& api, const CudaConditionKernels* conditions)
      : api_(api), conditions_(conditions) {}
  /// `arguments`: the places of the node's arguments.
  static CudaKernelNode params_of(const KernelNode& node, std::vector<void*>& arguments);

  const CudaApi& api_;
  const CudaConditionKernels* const conditions_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<KernelNode> kernels_;           // In the order of the work.
  std::vector<CudaCondition> conditions_of_;  // Of its loops and branches, in the same order.
};

}  // namespace tenon::gpu
