// Protocol buffers that pass through the PJRT C API (openxla/xla: xla/pjrt/proto): numbers of
// fields, and writers of the messages that both sides write. C++, unlike the other headers here.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>

#include "frameworks/pjrt/c_api/base.h"

namespace tenon::pjrt {

// CompileOptionsProto
inline constexpr uint32_t kBuildOptions = 3;
// ExecutableBuildOptionsProto
inline constexpr uint32_t kReplicas = 4, kPartitions = 5, kDeviceAssignment = 9;
// DeviceAssignmentProto, and ComputationDevice in it
inline constexpr uint32_t kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3,
                          kReplicaDeviceIds = 1;

/// A DeviceAssignmentProto of one device.
inline std::string device_assignment_of(int device) {
  std::string bytes;
  protozero::pbf_writer assignment(bytes);
  assignment.add_int32(kReplicaCount, 1);
  assignment.add_int32(kComputationCount, 1);
  protozero::pbf_writer computation(assignment, kComputationDevices);
  const std::array<int64_t, 1> ids = {device};
  computation.add_packed_int64(kReplicaDeviceIds, ids.begin(), ids.end());
  return bytes;
}

/// A CompileOptionsProto for one device: one replica, one partition.
inline std::string compile_options_for(int device) {
  std::string build_options;
  protozero::pbf_writer build(build_options);
  build.add_int64(kReplicas, 1);
  build.add_int64(kPartitions, 1);
  build.add_message(kDeviceAssignment, device_assignment_of(device));
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(kBuildOptions, build_options);
  return bytes;
}

// ShapeProto, and LayoutProto in it
inline constexpr uint32_t kElementType = 2, kDimensions = 3, kLayout = 5, kIsDynamic = 6,
                          kMinorToMajor = 1;

/// The number of a type in messages (XLA's PrimitiveType), by its number in the API.
inline constexpr std::array<int, 34> kPrimitiveTypes = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 16, 15, 18, 19,
    20, 23, 24, 25, 21, 22, 17, 26, 27, 28, 29, 33, 32, 30, 31, 36, 35};
static_assert(kPrimitiveTypes[PJRT_Buffer_Type_F32] == 11);
static_assert(kPrimitiveTypes[PJRT_Buffer_Type_BF16] == 16);
static_assert(kPrimitiveTypes[PJRT_Buffer_Type_TOKEN] == 17);
static_assert(kPrimitiveTypes[PJRT_Buffer_Type_F6E3M2FN] == 35);

/// A ShapeProto of a dense row-major array.
inline std::string shape_message_of(PJRT_Buffer_Type type, std::span<const int64_t> dims) {
  std::string layout;
  protozero::pbf_writer order(layout);
  const int64_t rank = static_cast<int64_t>(dims.size());
  {
    protozero::packed_field_int64 minor_to_major(order, kMinorToMajor);
    for (int64_t d = rank; d-- > 0;) minor_to_major.add_element(d);
  }
  std::string bytes;
  protozero::pbf_writer shape(bytes);
  shape.add_enum(kElementType, kPrimitiveTypes[static_cast<size_t>(type)]);
  shape.add_packed_int64(kDimensions, dims.begin(), dims.end());
  shape.add_message(kLayout, layout);
  const std::string all_static(dims.size(), '\0');
  shape.add_packed_bool(kIsDynamic, all_static.begin(), all_static.end());
  return bytes;
}

}  // namespace tenon::pjrt
