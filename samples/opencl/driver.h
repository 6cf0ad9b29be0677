// samples/opencl/: a plug-in for OpenCL devices, as a project outside of Tenon.
//
// Needs OpenCL 1.2, full profile or embedded. README.md says how it is built and what it handles;
// core/backend/plugin.h, which Tenon installs, is the contract (rules B1 … B29).
//
// This file: the devices of this machine, and OpenCL's errors as values.
#pragma once

// Functions of version 2.0 are called where the device has them.
#define CL_TARGET_OPENCL_VERSION 200
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_TARGET_OPENCL_VERSION 120
#include <CL/opencl.hpp>

#include "core/backend/backend.h"

namespace tenon::opencl {

/// "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES", with the code of the seam that fits it. OK for
/// CL_SUCCESS.
Status status_of(cl_int code, std::string_view function);

/// A device, and what the plug-in derives from its description.
struct Found {
  cl::Device device;
  backend::TargetInfo target;
  bool is_host = false;  ///< The device is the CPU itself.
  std::string build_options;

  /// Fine-grained SVM: the host sees the memory of the device.
  bool shares_memory() const { return target.spaces[0].host_visible; }
  /// The width of offsets of buffers.
  int offset_bits() const { return target.features.computes(ElementType::kU64) ? 64 : 32; }
};

/// Whether TENON_OPENCL_WITHOUT lists the feature: what narrow() knows, "host" or "calls".
bool is_without(std::string_view feature);

/// The devices of all platforms; none, if there is no platform. The environment may narrow them:
/// TENON_OPENCL_PLATFORM (a part of the platform's name), TENON_OPENCL_DEVICES (how many a device
/// counts as), and the variables of core/backend/driver/narrowing.h. Errors: a setting that is no
/// number.
Result<std::vector<Found>> find_devices();

/// An open device (device.cpp).
Result<std::unique_ptr<backend::Device>> open_device(const Found& found,
                                                     const cl::Context& context);

}  // namespace tenon::opencl
