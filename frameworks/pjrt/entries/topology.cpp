// Topologies: the descriptions of a client's devices, or of devices that nobody has opened, to
// compile for ahead of time.
#include <array>

#include "core/base/archive.h"
#include "core/base/digest.h"
#include "frameworks/pjrt/c_api/messages.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"
#include "frameworks/pjrt/types.h"

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

// A client's topology goes with the client.
Status topology_destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  if (args.topology != nullptr && !args.topology->belongs_to_client) delete args.topology;
  return {};
}

// --- Creation

constexpr serial::Format kTopologyFormat = {"TNTP", "topology", 1, 1};

struct SavedTopology {
  std::string platform_name;
  std::string device;
  int64_t device_count = 0;
  std::string text;
};
template <class A>
void serialize(A& a, serial::Of<A, SavedTopology>& saved) {
  a(saved.platform_name, saved.device, saved.device_count, saved.text);
}

// Names and texts, from `named` and `descriptions`.
void complete(PJRT_TopologyDescription& topology, const CreateOptions& options) {
  topology.platform_name = options.platform_name;
  topology.platform_version = platform_version_of(topology.named);
  topology.text = topology.platform_version;
  for (size_t i = 0; i < topology.descriptions.size(); ++i) {
    topology.text += fmt::format("\n{}\n{}", topology.descriptions[i]->text,
                                 backend::to_string(topology.named.devices[i].target));
  }
  topology.fingerprint = serial::short_digest_of(topology.text);
  const SavedTopology saved = {options.platform_name, options.engine.device,
                               options.engine.device_count, topology.text};
  serial::ArchiveWriter writer;
  writer(saved);
  topology.serialized = serial::seal(kTopologyFormat, std::move(writer).take());
}

Result<std::unique_ptr<PJRT_TopologyDescription>> topology_of(const CreateOptions& options) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  TENON_ASSIGN(topology->named, find_devices(options.engine));
  for (size_t i = 0; i < topology->named.devices.size(); ++i) {
    topology->owned_descriptions.push_back(std::make_unique<PJRT_DeviceDescription>());
    topology->descriptions.push_back(topology->owned_descriptions.back().get());
    describe(topology->named, i, *topology->descriptions.back());
  }
  complete(*topology, options);
  return topology;
}

// The name is that of the device, as in TENON_DEVICE, which an empty one leaves.
Status topology_create(PJRT_TopologyDescription_Create_Args& args) {
  TENON_ASSIGN(CreateOptions options, create_options_of(args.create_options, args.num_options));
  const std::string_view name = view_of(args.topology_name, args.topology_name_size);
  if (!name.empty()) options.engine.device = name;
  TENON_ASSIGN(auto topology, topology_of(options));
  args.topology = topology.release();
  return {};
}

Status topology_deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  TENON_ASSIGN(const serial::Unsealed file,
               serial::unseal(view_of(args.serialized_topology, args.serialized_topology_size),
                              kTopologyFormat));
  serial::ArchiveReader reader(file.payload, file.version);
  SavedTopology saved;
  reader(saved);
  TENON_TRY(Status(reader.status()));
  CreateOptions options;
  options.platform_name = saved.platform_name;
  options.engine.device = saved.device;
  options.engine.device_count = saved.device_count;
  TENON_ASSIGN(auto topology, topology_of(options));
  if (topology->text != saved.text) {
    return failed_precondition("the topology is of other devices or of another release: {}",
                               saved.text.substr(0, saved.text.find('\n')));
  }
  args.topology = topology.release();
  return {};
}

// --- Shapes

Status memory_kind_ids(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  static constexpr std::array<int, 2> kKinds = {static_cast<int>(runtime::MemoryKind::kDevice),
                                                static_cast<int>(runtime::MemoryKind::kPinnedHost)};
  args.memory_space_kind_ids = kKinds.data();
  args.num_memory_space_kind_ids = kKinds.size();
  return {};
}

// Arrays lie dense and row-major in every memory. The text is a ShapeProto.
Status canonical_shape(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args& args) {
  TENON_ASSIGN(const Shape shape, shape_of(args.element_type, args.dims, args.num_dims));
  TENON_TRY(check_device_layout(shape, args.layout));
  const std::string bytes = shape_message_of(args.element_type, shape.dims());
  auto copy = std::make_unique<char[]>(bytes.size() + 1);
  bytes.copy(copy.get(), bytes.size());
  args.serialized_shape_size = bytes.size();
  args.serialized_shape = copy.release();
  args.serialized_shape_deleter = [](const char* given) { delete[] given; };
  return {};
}

}  // namespace

void describe_topology(ClientState& state, const CreateOptions& options) {
  PJRT_TopologyDescription& topology = state.topology;
  topology.belongs_to_client = true;
  topology.named = state.engine->named();
  for (PJRT_Device* device : state.devices) topology.descriptions.push_back(&device->description);
  complete(topology, options);
}

void add_topology(PJRT_Api& api) {
  api.PJRT_TopologyDescription_Create = entry<topology_create>;
  api.PJRT_TopologyDescription_Destroy = entry<topology_destroy>;
  api.PJRT_TopologyDescription_PlatformName = entry<topology_platform_name>;
  api.PJRT_TopologyDescription_PlatformVersion = entry<topology_platform_version>;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = entry<device_descriptions>;
  api.PJRT_TopologyDescription_Serialize = entry<topology_serialize>;
  api.PJRT_TopologyDescription_Attributes = entry<attributes>;
  api.PJRT_TopologyDescription_Deserialize = entry<topology_deserialize>;
  api.PJRT_TopologyDescription_Fingerprint = entry<topology_fingerprint>;
  api.PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace = entry<canonical_shape>;
  api.PJRT_TopologyDescription_GetMemorySpaceKindIds = entry<memory_kind_ids>;
}

}  // namespace tenon::pjrt
