// The structs of the CUDA driver's graph functions that cuda_graph.cpp uses, under names of our
// own: the toolkit's headers gained and changed them from version to version, the driver's ABI
// keeps them. drivers_test.cpp compares them with a toolkit's that has them all.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(TENON_CUDA_H)
#include <cuda.h>
#else
#include "backends/gpu/cuda/cuda_declarations.h"
#endif

namespace tenon::gpu {

/// CUgraphConditionalHandle: the number that decides whether a conditional node runs its graph.
using CudaCondition = uint64_t;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct CudaKernelNode {
  CUfunction function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;  ///< Read before the call returns.
  void** extra = nullptr;
  void* kernel = nullptr;
  CUcontext context = nullptr;
};

/// CUgraphConditionalNodeType
enum CudaConditionalType : int { kCudaIf = 0, kCudaWhile = 1 };

/// CUDA_CONDITIONAL_NODE_PARAMS. `graphs`: set by the driver, to as many graphs as `size`.
struct CudaConditionalNode {
  CudaCondition condition = 0;
  CudaConditionalType type = kCudaIf;
  unsigned size = 1;
  CUgraph* graphs = nullptr;
  CUcontext context = nullptr;
};

/// CUgraphNodeParams of a conditional node: a union in the driver, whose other bytes are 0.
struct CudaNodeParams {
  static constexpr int kConditional = 13;  ///< CU_GRAPH_NODE_TYPE_CONDITIONAL
  int type = kConditional;
  int zeros[3] = {};
  CudaConditionalNode conditional;
  std::byte padding[29 * sizeof(long long) - sizeof(CudaConditionalNode)] = {};
  long long zero = 0;
};

/// The driver's functions for graphs with loops and branches, CUDA 12.3 and later. Each member is
/// the function of the name that find_cuda() states.
struct CudaGraphApi {
  CUresult (*create)(CUgraph* graph, unsigned flags);
  CUresult (*destroy)(CUgraph graph);
  CUresult (*add_kernel)(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                         const CudaKernelNode* params);
  CUresult (*add_node)(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                       const void* edges, size_t count, CudaNodeParams* params);
  CUresult (*create_condition)(CudaCondition* condition, CUgraph graph, CUcontext context,
                               unsigned at_launch, unsigned flags);
  CUresult (*instantiate)(CUgraphExec* executable, CUgraph graph, unsigned long long flags);
  CUresult (*set_kernel)(CUgraphExec executable, CUgraphNode node, const CudaKernelNode* params);
  CUresult (*launch)(CUgraphExec executable, CUstream stream);
  CUresult (*destroy_executable)(CUgraphExec executable);
};

}  // namespace tenon::gpu
