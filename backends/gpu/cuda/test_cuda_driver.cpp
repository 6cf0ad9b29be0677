// A CUDA driver for tests: the functions that CudaApi loads, on host memory; each finishes its work
// before it returns. Its GPU has two kernels that compute, `add` and `less`, and one that loses the
// GPU, `lose`. With TENON_TEST_CUDA_OLD it is a driver without graphs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/gpu/cuda/cuda_graph_types.h"

using tenon::gpu::CudaCondition;
using tenon::gpu::CudaConditionalType;
using tenon::gpu::CudaKernelNode;
using tenon::gpu::CudaNodeParams;

// Opaque in the driver's own headers.
struct CUctx_st {
  bool lost = false;
};
// A kernel, with the bytes of each of its parameters.
struct CUfunc_st {
  std::string_view name;
  std::vector<size_t> parameters;
};
struct CUmod_st {
  std::vector<CUfunc_st> functions;
};
// A node: a kernel with its arguments, or a conditional node with its graph.
struct CUgraphNode_st {
  CUgraph graph = nullptr;
  CUfunction function = nullptr;
  unsigned threads = 1;
  std::vector<uint64_t> arguments;
  CudaCondition condition = 0;
  CudaConditionalType type = tenon::gpu::kCudaIf;
  CUgraph body = nullptr;
};
struct CUgraph_st {
  CUgraph top = nullptr;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::unique_ptr<CUgraph_st>> bodies;
  std::map<CudaCondition, bool> conditions;  // Of the top: whether a node has it.
};
// The arguments are those when it was made, or set since.
struct CUgraphExec_st {
  CUgraph graph = nullptr;
  std::map<CUgraphNode, std::vector<uint64_t>> arguments;
  std::map<CudaCondition, unsigned> values;
};
struct CUstream_st {};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
};

namespace {

constexpr size_t kMemoryBytes = size_t{1} << 32;

// The stack of contexts; the last one is current.
thread_local std::vector<CUcontext> contexts;

CUcontext current() { return contexts.empty() ? nullptr : contexts.back(); }

CUresult state() {
  if (current() == nullptr) return static_cast<CUresult>(201);  // No context is current.
  return current()->lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

void* pointer_of(CUdeviceptr place) { return reinterpret_cast<void*>(place); }

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count, size_t stride) {
  if (state() != CUDA_SUCCESS) return state();
  for (size_t i = 0; i < count; ++i) std::memcpy(pointer_of(to + i * stride), &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult copy(void* to, const void* from, size_t bytes) {
  if (state() == CUDA_SUCCESS) std::memcpy(to, from, bytes);
  return state();
}

constexpr auto kInvalid = static_cast<CUresult>(1);

std::vector<uint64_t> arguments_of(const CUfunc_st& function, void* const* places) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    std::memcpy(&values.emplace_back(0), places[i], function.parameters[i]);
  }
  return values;
}

// Runs a kernel; `executable` is the graph in which it is, if it is in one.
CUresult run_kernel(const CUfunc_st& function, unsigned threads,
                    const std::vector<uint64_t>& arguments, CUgraphExec executable) {
  if (function.name == "lose") {
    current()->lost = true;  // The launch itself is accepted.
    return CUDA_SUCCESS;
  }
  if (function.name == "add") {  // (numbers, n): adds n to as many numbers as there are threads.
    auto* const numbers = static_cast<int*>(pointer_of(arguments[0]));
    for (unsigned i = 0; i < threads; ++i) numbers[i] += static_cast<int>(arguments[1]);
    return CUDA_SUCCESS;
  }
  if (function.name == "less") {  // (number, pred, n): whether the number is less than n.
    const int number = *static_cast<const int*>(pointer_of(arguments[0]));
    *static_cast<char*>(pointer_of(arguments[1])) = number < static_cast<int>(arguments[2]) ? 1 : 0;
    return CUDA_SUCCESS;
  }
  // The kernels that set conditions run in graphs alone.
  if (executable == nullptr) return kInvalid;
  const void* const place = pointer_of(arguments[1]);
  unsigned value = *static_cast<const unsigned char*>(place);
  if (function.name == "tenon_condition_of_branch") {
    const auto [is_pred, branch, count] = std::tie(arguments[2], arguments[3], arguments[4]);
    unsigned chosen = value != 0 ? 0 : 1;
    if (is_pred == 0) {
      std::memcpy(&chosen, place, sizeof chosen);
      chosen = std::min(chosen, static_cast<unsigned>(count) - 1);
    }
    value = chosen == branch ? 1 : 0;
  }
  executable->values[arguments[0]] = value & 1U;
  return CUDA_SUCCESS;
}

#if !defined(TENON_TEST_CUDA_OLD)

// Whether a new node of the graph comes behind its last one.
bool follows(CUgraph graph, const CUgraphNode* before, size_t count) {
  if (graph->nodes.empty()) return count == 0;
  return count == 1 && before[0] == graph->nodes.back().get();
}

void keep_arguments(CUgraphExec_st& executable, const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    if (node->function != nullptr) executable.arguments[node.get()] = node->arguments;
    if (node->body != nullptr) keep_arguments(executable, *node->body);
  }
}

CUresult run_graph(CUgraphExec_st& executable, const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    if (node->function != nullptr) {
      const CUresult result =
          run_kernel(*node->function, node->threads, executable.arguments[node.get()], &executable);
      if (result != CUDA_SUCCESS) return result;
      continue;
    }
    // A condition that nothing has set has any value.
    if (!executable.values.contains(node->condition)) return kInvalid;
    while (executable.values[node->condition] != 0) {
      const CUresult result = run_graph(executable, *node->body);
      if (result != CUDA_SUCCESS || node->type == tenon::gpu::kCudaIf) {
        if (result != CUDA_SUCCESS) return result;
        break;
      }
    }
  }
  return CUDA_SUCCESS;
}

#endif

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                              : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the test wants";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number == 0 ? CUDA_SUCCESS : static_cast<CUresult>(101);
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "GPU of a test", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = kMemoryBytes;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 7;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 8;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 6;
      break;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice) {
  *context = contexts.emplace_back(new CUctx_st);
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy_v2(CUcontext context) {
  if (current() == context) contexts.pop_back();
  delete context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (contexts.empty()) return static_cast<CUresult>(201);
  *context = current();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  if (state() != CUDA_SUCCESS) return state();
  if (bytes > kMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr memory) {
  std::free(pointer_of(memory));
  return state();
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  return copy(pointer_of(to), from, bytes);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  return copy(to, pointer_of(from), bytes);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  return copy(pointer_of(to), pointer_of(from), bytes);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
  return fill(to, value, count, sizeof value);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
  return fill(to, value, count, sizeof value);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
  return fill(to, value, count, sizeof value);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream) {
  return width == 1 ? fill(to, value, height, pitch) : static_cast<CUresult>(1);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = new CUstream_st;
  return state();
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return state(); }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  if (state() != CUDA_SUCCESS) return state();
  const std::string_view text = static_cast<const char*>(image);
  if (text.find("cudaGraphSetConditional") != std::string_view::npos) {
    *module = new CUmod_st{
        {{"tenon_condition_of_loop", {8, 8}}, {"tenon_condition_of_branch", {8, 8, 4, 4, 4}}}};
    return CUDA_SUCCESS;
  }
  if (text != "a module") {
    const bool logs = count == 2 && options[0] == CU_JIT_ERROR_LOG_BUFFER &&
                      options[1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    if (logs) {
      std::strncpy(static_cast<char*>(values[0]), "line 1: this is not a module",
                   reinterpret_cast<size_t>(values[1]));
    }
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = new CUmod_st{{{"add", {8, 4}}, {"lose", {}}, {"less", {8, 8, 4}}}};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  delete module;
  return state();
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const auto found = std::ranges::find(module->functions, name, &CUfunc_st::name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &*found;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CUstream,
                        void** arguments, void**) {
  if (state() != CUDA_SUCCESS) return state();
  const unsigned threads = grid_x * grid_y * grid_z * block_x * block_y * block_z;
  return run_kernel(*function, threads, arguments_of(*function, arguments), nullptr);
}

// The events that have been created.
int tenon_test_events = 0;

CUresult cuEventCreate(CUevent* event, unsigned) {
  ++tenon_test_events;
  if (state() == CUDA_SUCCESS) *event = new CUevent_st;
  return state();
}
CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream) {
  event->time = std::chrono::steady_clock::now();
  return state();
}
CUresult cuEventQuery(CUevent) { return state(); }
CUresult cuEventSynchronize(CUevent) { return state(); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return state();
}

#if !defined(TENON_TEST_CUDA_OLD)

// Graphs and executables that exist; executables that have been made; nodes that have been set.
int tenon_test_graphs = 0;
int tenon_test_executables = 0;
int tenon_test_nodes_set = 0;
// There is room for so many graphs and executables.
int tenon_test_most_graphs = 1 << 30;

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  if (state() != CUDA_SUCCESS || flags != 0) return flags != 0 ? kInvalid : state();
  *graph = new CUgraph_st;
  (*graph)->top = *graph;
  ++tenon_test_graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  --tenon_test_graphs;
  delete graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                 size_t count, const CudaKernelNode* params) {
  if (state() != CUDA_SUCCESS) return state();
  if (!follows(graph, before, count) || params->extra != nullptr || params->kernel != nullptr) {
    return kInvalid;
  }
  auto made = std::make_unique<CUgraphNode_st>();
  made->graph = graph;
  made->function = params->function;
  made->threads = params->grid[0] * params->grid[1] * params->grid[2] * params->block[0] *
                  params->block[1] * params->block[2];
  made->arguments = arguments_of(*params->function, params->arguments);
  *node = graph->nodes.emplace_back(std::move(made)).get();
  return CUDA_SUCCESS;
}
CUresult cuGraphConditionalHandleCreate(CudaCondition* condition, CUgraph graph, CUcontext context,
                                        unsigned, unsigned flags) {
  static CudaCondition last = 0;
  if (context != current() || flags > 1) return kInvalid;
  *condition = ++last;
  graph->top->conditions[last] = false;
  return state();
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                           const void* edges, size_t count, CudaNodeParams* params) {
  if (state() != CUDA_SUCCESS) return state();
  auto& conditional = params->conditional;
  const auto condition = graph->top->conditions.find(conditional.condition);
  const bool is_new = condition != graph->top->conditions.end() && !condition->second;
  const bool zeros = std::ranges::count(params->zeros, 0) == 3 && params->zero == 0 &&
                     std::ranges::count(params->padding, std::byte{0}) ==
                         static_cast<std::ptrdiff_t>(sizeof params->padding);
  if (!follows(graph, before, count) || edges != nullptr || !is_new || !zeros ||
      params->type != CudaNodeParams::kConditional || conditional.size != 1 ||
      conditional.context != current()) {
    return kInvalid;
  }
  condition->second = true;
  auto made = std::make_unique<CUgraphNode_st>();
  made->graph = graph;
  made->condition = conditional.condition;
  made->type = conditional.type;
  made->body = graph->bodies.emplace_back(std::make_unique<CUgraph_st>()).get();
  made->body->top = graph->top;
  *node = graph->nodes.emplace_back(std::move(made)).get();
  conditional.graphs = &(*node)->body;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  if (state() != CUDA_SUCCESS) return state();
  for (const auto& [condition, used] : graph->conditions) {
    if (!used) return kInvalid;
  }
  if (flags != 0) return kInvalid;
  if (tenon_test_graphs >= tenon_test_most_graphs) return CUDA_ERROR_OUT_OF_MEMORY;
  *executable = new CUgraphExec_st{graph, {}, {}};
  keep_arguments(**executable, *graph);
  ++tenon_test_graphs;
  ++tenon_test_executables;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CudaKernelNode* params) {
  const auto known = executable->arguments.find(node);
  if (known == executable->arguments.end() || node->function != params->function) return kInvalid;
  known->second = arguments_of(*params->function, params->arguments);
  ++tenon_test_nodes_set;
  return state();
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  if (state() != CUDA_SUCCESS) return state();
  executable->values.clear();
  return run_graph(*executable, *executable->graph);
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  --tenon_test_graphs;
  delete executable;
  return CUDA_SUCCESS;
}

#endif

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
