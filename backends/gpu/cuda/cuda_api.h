// The functions of the CUDA driver, loaded at run time.
#pragma once

#include <optional>
#include <string>

// With or without the toolkit's header, the types are the same.
#include "backends/gpu/cuda/cuda_graph_types.h"
#include "core/base/status.h"

namespace tenon::gpu {

/// Each member is the driver's function of the name that find_cuda() states.
struct CudaApi {
  CUresult (*init)(unsigned flags);
  CUresult (*error_name)(CUresult error, const char** name);
  CUresult (*error_text)(CUresult error, const char** text);
  CUresult (*device_count)(int* count);
  CUresult (*device)(CUdevice* device, int number);
  CUresult (*device_name)(char* name, int size, CUdevice device);
  CUresult (*device_memory)(size_t* bytes, CUdevice device);
  CUresult (*device_attribute)(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult (*create_context)(CUcontext* context, unsigned flags, CUdevice device);
  CUresult (*destroy_context)(CUcontext context);
  CUresult (*push_context)(CUcontext context);
  CUresult (*pop_context)(CUcontext* context);
  CUresult (*allocate)(CUdeviceptr* memory, size_t bytes);
  CUresult (*free)(CUdeviceptr memory);
  CUresult (*create_stream)(CUstream* stream, unsigned flags);
  CUresult (*destroy_stream)(CUstream stream);
  CUresult (*wait_stream)(CUstream stream, CUevent event, unsigned flags);
  CUresult (*copy_to_device)(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult (*copy_to_host)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*copy_on_device)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*fill_8)(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
  CUresult (*fill_16)(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
  CUresult (*fill_32)(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
  CUresult (*fill_rows_32)(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                           size_t height, CUstream stream);
  CUresult (*load_module)(CUmodule* module, const void* image, unsigned option_count,
                          CUjit_option* options, void** values);
  CUresult (*unload_module)(CUmodule module);
  CUresult (*function)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     CUstream stream, void** arguments, void** extra);
  CUresult (*create_event)(CUevent* event, unsigned flags);
  CUresult (*destroy_event)(CUevent event);
  CUresult (*record)(CUevent event, CUstream stream);
  CUresult (*query)(CUevent event);
  CUresult (*synchronize)(CUevent event);
  CUresult (*elapsed)(float* milliseconds, CUevent begin, CUevent end);

  /// Nothing if the driver is older than these functions.
  std::optional<CudaGraphApi> graphs;

  /// OK, or an error with the driver's name for it. kUnavailable: the GPU is lost.
  Status check(CUresult result, const char* what) const;
};

/// Loads the library once; the table lives as long as the process. Errors: kUnavailable if there is
/// no library, or it lacks a function.
Result<const CudaApi*> find_cuda(const std::string& library = "libcuda.so.1");

}  // namespace tenon::gpu
