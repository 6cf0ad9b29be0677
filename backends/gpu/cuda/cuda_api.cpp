#include "backends/gpu/cuda/cuda_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace tenon::gpu {
namespace {

class Loader {
 public:
  explicit Loader(void* library) : library_(library) {}

  template <class F>
  void load(const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

void load_all(Loader& loader, CudaApi& api) {
  loader.load("cuInit", api.init);
  loader.load("cuGetErrorName", api.error_name);
  loader.load("cuGetErrorString", api.error_text);
  loader.load("cuDeviceGetCount", api.device_count);
  loader.load("cuDeviceGet", api.device);
  loader.load("cuDeviceGetName", api.device_name);
  loader.load("cuDeviceTotalMem_v2", api.device_memory);
  loader.load("cuDeviceGetAttribute", api.device_attribute);
  loader.load("cuCtxCreate_v2", api.create_context);
  loader.load("cuCtxDestroy_v2", api.destroy_context);
  loader.load("cuCtxPushCurrent_v2", api.push_context);
  loader.load("cuCtxPopCurrent_v2", api.pop_context);
  loader.load("cuMemAlloc_v2", api.allocate);
  loader.load("cuMemFree_v2", api.free);
  loader.load("cuStreamCreate", api.create_stream);
  loader.load("cuStreamDestroy_v2", api.destroy_stream);
  loader.load("cuStreamWaitEvent", api.wait_stream);
  loader.load("cuMemcpyHtoDAsync_v2", api.copy_to_device);
  loader.load("cuMemcpyDtoHAsync_v2", api.copy_to_host);
  loader.load("cuMemcpyDtoDAsync_v2", api.copy_on_device);
  loader.load("cuMemsetD8Async", api.fill_8);
  loader.load("cuMemsetD16Async", api.fill_16);
  loader.load("cuMemsetD32Async", api.fill_32);
  loader.load("cuMemsetD2D32Async", api.fill_rows_32);
  loader.load("cuModuleLoadDataEx", api.load_module);
  loader.load("cuModuleUnload", api.unload_module);
  loader.load("cuModuleGetFunction", api.function);
  loader.load("cuLaunchKernel", api.launch);
  loader.load("cuEventCreate", api.create_event);
  loader.load("cuEventDestroy_v2", api.destroy_event);
  loader.load("cuEventRecord", api.record);
  loader.load("cuEventQuery", api.query);
  loader.load("cuEventSynchronize", api.synchronize);
  loader.load("cuEventElapsedTime", api.elapsed);
}

CudaGraphApi load_graphs(Loader& loader) {
  CudaGraphApi api{};
  loader.load("cuGraphCreate", api.create);
  loader.load("cuGraphDestroy", api.destroy);
  loader.load("cuGraphAddKernelNode_v2", api.add_kernel);
  loader.load("cuGraphAddNode_v2", api.add_node);
  loader.load("cuGraphConditionalHandleCreate", api.create_condition);
  loader.load("cuGraphInstantiateWithFlags", api.instantiate);
  loader.load("cuGraphExecKernelNodeSetParams_v2", api.set_kernel);
  loader.load("cuGraphLaunch", api.launch);
  loader.load("cuGraphExecDestroy", api.destroy_executable);
  return api;
}

Result<const CudaApi*> load_library(const std::string& library) {
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return make_error(ErrorCode::kUnavailable, "there is no CUDA driver: {}", dlerror());
  }
  auto api = std::make_unique<CudaApi>();
  Loader loader(loaded);
  load_all(loader, *api);
  if (!loader.missing().empty()) {
    dlclose(loaded);
    return make_error(ErrorCode::kUnavailable, "the CUDA driver {} has no function {}", library,
                      loader.missing());
  }
  Loader newer(loaded);
  const CudaGraphApi graphs = load_graphs(newer);
  if (newer.missing().empty()) api->graphs = graphs;
  return api.release();  // Never freed, like the library.
}

// Errors that some toolkits' headers lack: NVLink, contained, MPS, and other devices' errors.
constexpr std::array kAlsoFinal = {220, 226, 810, 911};

ErrorCode code_of(CUresult result) {
  if (std::ranges::count(kAlsoFinal, static_cast<int>(result)) != 0) return ErrorCode::kUnavailable;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::kResourceExhausted;
    case CUDA_ERROR_NOT_FOUND:
      return ErrorCode::kNotFound;
    // After these errors a context no longer works, or there is no context.
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Status CudaApi::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (error_text(result, &text) != CUDA_SUCCESS || text == nullptr) text = "";
  return Status(code_of(result), fmt::format("the CUDA driver cannot {}: {} ({}): {}", what, name,
                                             static_cast<int>(result), text));
}

Result<const CudaApi*> find_cuda(const std::string& library) {
  static std::mutex mutex;
  // Never freed, like the libraries.
  static auto& found = *new std::map<std::string, Result<const CudaApi*>>;
  const std::lock_guard lock(mutex);
  const auto known = found.find(library);
  if (known != found.end()) return known->second;
  return found.emplace(library, load_library(library)).first->second;
}

}  // namespace tenon::gpu
