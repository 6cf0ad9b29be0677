// Protocol buffers that pass through the PJRT C API (openxla/xla: xla/pjrt/proto): numbers of
// fields, and writers of the messages that both sides write. C++, unlike the other headers here.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>

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

}  // namespace tenon::pjrt
