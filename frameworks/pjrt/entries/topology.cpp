// The topology of a client: the descriptions of its devices.
#include "core/base/digest.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"

// The holder of a topology's serial form, which the topology itself keeps.
struct PJRT_SerializedTopology {};

namespace tenon::pjrt {
namespace {

Status topology_platform_name(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = args.topology->platform_name.c_str();
  args.platform_name_size = args.topology->platform_name.size();
  return {};
}

Status topology_platform_version(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = args.topology->platform_version.c_str();
  args.platform_version_size = args.topology->platform_version.size();
  return {};
}

Status device_descriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = args.topology->descriptions.data();
  args.num_descriptions = args.topology->descriptions.size();
  return {};
}

Status attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  return {};
}

Status topology_fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = args.topology->fingerprint;
  return {};
}

Status topology_serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  args.serialized_bytes = args.topology->serialized.data();
  args.serialized_bytes_size = args.topology->serialized.size();
  args.serialized_topology = new PJRT_SerializedTopology();
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* holder) { delete holder; };
  return {};
}

// Topologies belong to their clients and are not destroyed separately.
Status topology_destroy(PJRT_TopologyDescription_Destroy_Args&) { return {}; }

}  // namespace

void describe_topology(ClientState& state) {
  PJRT_TopologyDescription& topology = state.topology;
  topology.platform_name = state.platform_name;
  topology.platform_version = state.platform_version;
  topology.serialized = state.platform_version;
  for (PJRT_Device* device : state.devices) {
    topology.descriptions.push_back(&device->description);
    topology.serialized += fmt::format("\n{}\n{}", device->description.text,
                                       backend::to_string(device->first()->info().target));
  }
  topology.fingerprint = serial::short_digest_of(topology.serialized);
}

void add_topology(PJRT_Api& api) {
  api.PJRT_TopologyDescription_Create =
      refuse<"TopologyDescription_Create: a topology comes with a client of its devices">;
  api.PJRT_TopologyDescription_Destroy = entry<topology_destroy>;
  api.PJRT_TopologyDescription_PlatformName = entry<topology_platform_name>;
  api.PJRT_TopologyDescription_PlatformVersion = entry<topology_platform_version>;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = entry<device_descriptions>;
  api.PJRT_TopologyDescription_Serialize = entry<topology_serialize>;
  api.PJRT_TopologyDescription_Attributes = entry<attributes>;
  api.PJRT_TopologyDescription_Deserialize =
      refuse<"TopologyDescription_Deserialize: a topology comes with a client of its devices">;
  api.PJRT_TopologyDescription_Fingerprint = entry<topology_fingerprint>;
  // If these are null, callers assume row-major shapes and one kind of memory space.
  api.PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace = nullptr;
  api.PJRT_TopologyDescription_GetMemorySpaceKindIds = nullptr;
}

}  // namespace tenon::pjrt
