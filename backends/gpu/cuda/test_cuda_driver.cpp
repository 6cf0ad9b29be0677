// A CUDA driver for tests: the functions that CudaApi loads, on host memory; each finishes its work
// before it returns. Its GPU has a kernel that computes, `add`, and one that loses the GPU, `lose`.
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "backends/gpu/cuda/cuda_declarations.h"

// Opaque in the driver's own headers.
struct CUctx_st {
  bool lost = false;
};
struct CUfunc_st {
  bool loses = false;
};
struct CUmod_st {
  CUfunc_st functions[2] = {{false}, {true}};
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
  if (static_cast<const char*>(image) != std::string_view("a module")) {
    const bool logs = count == 2 && options[0] == CU_JIT_ERROR_LOG_BUFFER &&
                      options[1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    if (logs) {
      std::strncpy(static_cast<char*>(values[0]), "line 1: this is not a module",
                   reinterpret_cast<size_t>(values[1]));
    }
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = new CUmod_st;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  delete module;
  return state();
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const std::string_view wanted = name;
  if (wanted != "add" && wanted != "lose") return CUDA_ERROR_NOT_FOUND;
  *function = &module->functions[wanted == "lose" ? 1 : 0];
  return CUDA_SUCCESS;
}
// add(numbers, n): adds n to as many numbers as there are threads.
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CUstream,
                        void** arguments, void**) {
  if (state() != CUDA_SUCCESS) return state();
  if (function->loses) {
    current()->lost = true;  // The launch itself is accepted.
    return CUDA_SUCCESS;
  }
  CUdeviceptr numbers = 0;
  int n = 0;
  std::memcpy(&numbers, arguments[0], sizeof numbers);
  std::memcpy(&n, arguments[1], sizeof n);
  const unsigned threads = grid_x * grid_y * grid_z * block_x * block_y * block_z;
  for (unsigned i = 0; i < threads; ++i) static_cast<int*>(pointer_of(numbers))[i] += n;
  return CUDA_SUCCESS;
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

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
