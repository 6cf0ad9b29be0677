#include "driver.h"

#include <algorithm>

#include "core/backend/adapter/rendering.h"
#include "core/backend/driver/narrowing.h"
#include "core/base/process/environment.h"

namespace tenon::opencl {
namespace {

constexpr std::pair<cl_int, std::string_view> kCodes[] = {
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"}};

std::string code_name(cl_int code) {
  for (const auto& [number, name] : kCodes) {
    if (number == code) return std::string(name);
  }
  return fmt::format("code {}", code);
}

kernel::TargetFeatures features_of(const cl::Device& device) {
  const bool embedded = device.getInfo<CL_DEVICE_PROFILE>() == "EMBEDDED_PROFILE";
  const bool has_s64 = !embedded || device.getInfo<CL_DEVICE_EXTENSIONS>().find("cles_khr_int64") !=
                                        std::string::npos;
  std::string types = "s8,u8,s16,u16,fma";
  if (has_s64) types += ",s64,u64";
  if (device.getInfo<CL_DEVICE_DOUBLE_FP_CONFIG>() != 0) types += ",f64";
  if (!embedded) types += ",convert_f16";  // Rounding to nearest even.
  kernel::TargetFeatures features = kernel::TargetFeatures::parse(types).value();
  features.atomics = {ElementType::kS32, ElementType::kU32};
  return features;
}

Result<Found> describe(const cl::Device& device, const std::string& platform) {
  constexpr int64_t kUsualLanes = 128;
  constexpr int64_t kParameterBytes = 16;     // A pointer and an offset.
  constexpr int64_t kMostSvmAlignment = 128;  // That of the largest type.
  Found found;
  found.device = device;
  const cl_device_fp_config single = device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>();
  found.is_host =
      (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0 && !is_without("host");
  found.build_options = "-cl-std=CL1.2";
  if ((single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) {
    found.build_options += " -cl-fp32-correctly-rounded-divide-sqrt";
  }

  backend::TargetInfo& target = found.target;
  target.name = device.getInfo<CL_DEVICE_NAME>();
  target.features = features_of(device);
  if ((single & CL_FP_DENORM) == 0) target.flushed.insert(ElementType::kF32);
  target.compute_units = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  target.most_lanes = static_cast<int64_t>(device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>());
  // A CPU runs the lanes of a workgroup in turn; loops within one lane are faster.
  target.preferred_lanes = found.is_host ? 1 : std::min(kUsualLanes, target.most_lanes);
  target.vector_bytes =
      4 * static_cast<int64_t>(std::max(device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>(), 1U));
  target.scratch_bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>());
  target.most_parameters =
      static_cast<int64_t>(device.getInfo<CL_DEVICE_MAX_PARAMETER_SIZE>()) / kParameterBytes - 1;
  target.largest_buffer = static_cast<int64_t>(device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>());
  backend::SpaceInfo& space = target.spaces[0];
  space.bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>());
  space.alignment = std::max<int64_t>(64, device.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>() / 8);
  cl_device_svm_capabilities svm = 0;  // Unknown to devices of version 1.2.
  static_cast<void>(device.getInfo(CL_DEVICE_SVM_CAPABILITIES, &svm));
  space.host_visible = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  target.queues = 3;  // Copies run beside kernels.
  TENON_TRY(backend::narrow(target, "TENON_OPENCL"));
  space.host_visible &= space.alignment <= kMostSvmAlignment;
  space.host_writable = space.host_visible;
  backend::declare_rendering(target);
  target.compiler_id =
      fmt::format("opencl-1 {} {} {} {} {}", platform, target.name,
                  device.getInfo<CL_DRIVER_VERSION>(), found.build_options, target.preferred_lanes);
  return found;
}

}  // namespace

bool is_without(std::string_view feature) {
  return environment_lists("TENON_OPENCL_WITHOUT", feature);
}

Status status_of(cl_int code, std::string_view function) {
  if (code == CL_SUCCESS) return {};
  const bool no_room = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                       code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return make_error(no_room                           ? ErrorCode::kResourceExhausted
                    : code == CL_DEVICE_NOT_AVAILABLE ? ErrorCode::kUnavailable
                                                      : ErrorCode::kInternal,
                    "{}: {}", function, code_name(code));
}

Result<std::vector<Found>> find_devices() {
  const std::string wanted = environment_or("TENON_OPENCL_PLATFORM", "");
  TENON_ASSIGN(const int64_t count, environment_number("TENON_OPENCL_DEVICES", 1));
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);  // An error says that there is none.
  std::vector<Found> found;
  for (const cl::Platform& platform : platforms) {
    const std::string name = platform.getInfo<CL_PLATFORM_NAME>();
    if (name.find(wanted) == std::string::npos) continue;
    std::vector<cl::Device> devices;
    platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    for (const cl::Device& device : devices) {
      if (!device.getInfo<CL_DEVICE_AVAILABLE>() || !device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>())
        continue;
      TENON_ASSIGN(const Found one, describe(device, name));
      found.insert(found.end(), static_cast<size_t>(count), one);
    }
  }
  return found;
}

}  // namespace tenon::opencl
