// samples/opencl/nvrtc/: a plug-in for NVIDIA GPUs through source, beside the one for OpenCL.
//
// Kernels become CUDA C++, which NVRTC compiles for the GPU's own architecture; CUDA's driver loads
// and launches them. Both libraries are loaded when devices are first listed, and the few functions
// that are used are declared here: neither a GPU nor a CUDA Toolkit is needed to build.
//
// This file: the two libraries. Thread-safety: theirs; all of these functions may be called from
// any thread.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "core/backend/backend.h"
#include "core/base/process/library.h"

namespace tenon::nvrtc {

using GpuAddress = unsigned long long;
using CudaContext = struct OpaqueContext*;
using CudaModule = struct OpaqueModule*;
using CudaFunction = struct OpaqueFunction*;
using CudaStream = struct OpaqueStream*;
using CudaEvent = struct OpaqueEvent*;

enum CudaAttribute {  // The numbers are CUDA's.
  kThreadsPerBlock = 1,
  kSharedBytesPerBlock = 8,
  kMultiprocessors = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76
};

/// The driver. Errors: kUnavailable, if there is no GPU or it works no more.
struct Cuda final : NamedLibrary {
  Cuda() : NamedLibrary("TENON_CUDA_LIBRARY", {"libcuda.so.1"}) {}

  LibraryFunction<unsigned> init{*this, "cuInit"};
  LibraryFunction<int, const char**> error_name{*this, "cuGetErrorName"};
  LibraryFunction<int, const char**> error_text{*this, "cuGetErrorString"};
  LibraryFunction<int*> device_count{*this, "cuDeviceGetCount"};
  LibraryFunction<int*, int> device{*this, "cuDeviceGet"};
  LibraryFunction<size_t*, int> device_memory{*this, "cuDeviceTotalMem_v2"};
  LibraryFunction<int*, int, int> attribute{*this, "cuDeviceGetAttribute"};
  LibraryFunction<CudaContext*, unsigned, int> create_context{*this, "cuCtxCreate_v2"};
  LibraryFunction<CudaContext> destroy_context{*this, "cuCtxDestroy_v2"};
  LibraryFunction<CudaContext> push_context{*this, "cuCtxPushCurrent_v2"};
  LibraryFunction<CudaContext*> pop_context{*this, "cuCtxPopCurrent_v2"};
  LibraryFunction<GpuAddress*, size_t> allocate{*this, "cuMemAlloc_v2"};
  LibraryFunction<GpuAddress> free{*this, "cuMemFree_v2"};
  LibraryFunction<void**, size_t, unsigned> allocate_host{*this, "cuMemHostAlloc"};
  LibraryFunction<GpuAddress, GpuAddress, size_t, CudaStream> copy{*this, "cuMemcpyAsync"};
  LibraryFunction<GpuAddress, unsigned char, size_t, CudaStream> fill_8{*this, "cuMemsetD8Async"};
  LibraryFunction<GpuAddress, unsigned short, size_t, CudaStream> fill_16{*this,
                                                                          "cuMemsetD16Async"};
  LibraryFunction<GpuAddress, unsigned, size_t, CudaStream> fill_32{*this, "cuMemsetD32Async"};
  LibraryFunction<GpuAddress, size_t, unsigned, size_t, size_t, CudaStream> fill_rows_32{
      *this, "cuMemsetD2D32Async"};
  LibraryFunction<CudaModule*, const void*> load_module{*this, "cuModuleLoadData"};
  LibraryFunction<CudaModule> unload_module{*this, "cuModuleUnload"};
  LibraryFunction<CudaFunction*, CudaModule, const char*> find_function{*this,
                                                                        "cuModuleGetFunction"};
  LibraryFunction<CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, CudaStream, void**, void**>
      launch{*this, "cuLaunchKernel"};
  LibraryFunction<CudaStream*, unsigned> create_stream{*this, "cuStreamCreate"};
  LibraryFunction<CudaStream, CudaEvent, unsigned> wait{*this, "cuStreamWaitEvent"};
  LibraryFunction<CudaStream> finish{*this, "cuStreamSynchronize"};
  LibraryFunction<CudaEvent*, unsigned> create_event{*this, "cuEventCreate"};
  LibraryFunction<CudaEvent, CudaStream> record{*this, "cuEventRecord"};
  LibraryFunction<CudaEvent> query{*this, "cuEventQuery"};
  LibraryFunction<float*, CudaEvent, CudaEvent> elapsed{*this, "cuEventElapsedTime"};

  Status status_of(int code, std::string_view function) const override {
    const char* name = nullptr;
    const char* text = nullptr;
    if (error_name.code_of(code, &name) != 0 || error_text.code_of(code, &text) != 0)
      name = nullptr;
    return {kind_of(code), name == nullptr ? fmt::format("{}: code {}", function, code)
                                           : fmt::format("{}: {}: {}", function, name, text)};
  }

  static ErrorCode kind_of(int code) {
    constexpr int kOutOfMemory = 2;
    constexpr int kNotReady = 600;
    // After these a context works no more, or there is none: no device, an uncorrectable error of
    // its memory or links, a wrong address, an assertion, a failed launch, an unknown error …
    constexpr std::array kFinal = {3,   4,   100, 214, 220, 226, 700, 702, 709, 710,
                                   714, 715, 716, 717, 718, 719, 810, 911, 999};
    if (code == kOutOfMemory) return ErrorCode::kResourceExhausted;
    if (code == kNotReady) return ErrorCode::kDeadlineExceeded;
    return std::ranges::count(kFinal, code) != 0 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
  }
};

using SourceProgram = struct OpaqueProgram*;

/// NVRTC.
struct Compiler final : NamedLibrary {
  Compiler()
      : NamedLibrary("TENON_NVRTC_LIBRARY", {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    // NVRTC looks for a part of it by name alone, which is beside it, in any folder.
    Dl_info where;
    int major = 0, minor = 0;
    if (!state().ok() || dladdr(error_text, &where) == 0 || !version(&major, &minor).ok()) return;
    const std::string_view file = where.dli_fname;
    const std::string part = fmt::format("{}libnvrtc-builtins.so.{}.{}",
                                         file.substr(0, file.rfind('/') + 1), major, minor);
    static_cast<void>(dlopen(part.c_str(), RTLD_NOW | RTLD_LOCAL));
  }

  LibraryFunction<int*, int*> version{*this, "nvrtcVersion"};
  LibraryFunction<SourceProgram*, const char*, const char*, int, const char* const*,
                  const char* const*>
      create{*this, "nvrtcCreateProgram"};
  LibraryFunction<SourceProgram*> destroy{*this, "nvrtcDestroyProgram"};
  LibraryFunction<SourceProgram, int, const char* const*> compile{*this, "nvrtcCompileProgram"};
  LibraryFunction<SourceProgram, size_t*> log_size{*this, "nvrtcGetProgramLogSize"};
  LibraryFunction<SourceProgram, char*> log{*this, "nvrtcGetProgramLog"};
  LibraryFunction<SourceProgram, size_t*> cubin_size{*this, "nvrtcGetCUBINSize"};
  LibraryFunction<SourceProgram, char*> cubin{*this, "nvrtcGetCUBIN"};
  void* error_text = find("nvrtcGetErrorString");

  Status status_of(int code, std::string_view function) const override {
    const auto text_of = reinterpret_cast<const char* (*)(int)>(error_text);
    return {ErrorCode::kInternal, fmt::format("{}: {}", function, text_of(code))};
  }
};

inline const Cuda& cuda() {
  static const Cuda& loaded = *new Cuda;
  return loaded;
}
inline const Compiler& compiler() {
  static const Compiler& loaded = *new Compiler;
  return loaded;
}

/// Opens the GPU of this number (device.cpp).
Result<std::unique_ptr<backend::Device>> open_device(int number, uint32_t queues);

}  // namespace tenon::nvrtc
