// Devices, their descriptions and memories.
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"

// The holder of a device's attributes, which the device itself keeps.
struct PJRT_Device_Attributes {};

namespace tenon::pjrt {
namespace {

// --- User data of memories

void* get_user_data(PJRT_Memory* memory, const void* key) noexcept {
  MemorySpace& kept = unwrap(memory);
  const std::lock_guard lock(kept.mutex);
  const auto found = kept.user_data.find(key);
  return found == kept.user_data.end() ? nullptr : found->second.data;
}

// If there is no memory to keep `data`, it is destroyed at once: the function has no other way to
// report the failure.
void set_user_data(PJRT_Memory* memory, const void* key, void* data,
                   void (*destroy)(void*)) noexcept {
  MemorySpace& kept = unwrap(memory);
  MemorySpace::UserData gone = {data, destroy};
  try {
    const std::lock_guard lock(kept.mutex);
    std::swap(gone, kept.user_data[key]);
  } catch (const std::bad_alloc&) {
  }
  if (gone.destroy != nullptr) gone.destroy(gone.data);
}

const PJRT_Memory_FunctionTable kMemoryFunctions = {sizeof(PJRT_Memory_FunctionTable), nullptr,
                                                    sizeof(MemorySpace), &get_user_data,
                                                    &set_user_data};

// --- Descriptions

Status description_id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = args.device_description->id;
  return {};
}

Status description_process_index(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = 0;
  return {};
}

Status description_attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  args.attributes = args.device_description->attributes.data();
  args.num_attributes = args.device_description->attributes.size();
  return {};
}

Status description_kind(PJRT_DeviceDescription_Kind_Args& args) {
  args.device_kind = args.device_description->kind.c_str();
  args.device_kind_size = args.device_description->kind.size();
  return {};
}

Status description_debug_string(PJRT_DeviceDescription_DebugString_Args& args) {
  args.debug_string = args.device_description->debug_text.c_str();
  args.debug_string_size = args.device_description->debug_text.size();
  return {};
}

Status description_to_string(PJRT_DeviceDescription_ToString_Args& args) {
  args.to_string = args.device_description->text.c_str();
  args.to_string_size = args.device_description->text.size();
  return {};
}

// --- Devices

Status get_description(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &args.device->description;
  return {};
}

// The same as of the description: nothing more is known of a device that is open.
Status device_attributes(PJRT_Device_GetAttributes_Args& args) {
  args.attributes = args.device->description.attributes.data();
  args.num_attributes = args.device->description.attributes.size();
  args.device_attributes = new PJRT_Device_Attributes();
  args.attributes_deleter = [](PJRT_Device_Attributes* given) { delete given; };
  return {};
}

Status is_addressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = true;
  return {};
}

Status local_hardware_id(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = static_cast<int>(args.device->first()->number());
  return {};
}

Status device_memories(PJRT_Device_AddressableMemories_Args& args) {
  args.memories = args.device->memories.data();
  args.num_memories = args.device->memories.size();
  return {};
}

Status default_memory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = args.device->memories.front();
  return {};
}

// The structure is uninitialised: each flag must be written.
Status memory_stats(PJRT_Device_MemoryStats_Args& args) {
  const auto last = args.device->engine->last_device(args.device->place);
  runtime::Device& device = *last;
  const runtime::MemoryStatistics statistics = device.memory().statistics();
  const int64_t limit = device.info().target.spaces.front().bytes;
  const auto set = [](int64_t& value, bool& is_set, int64_t given, bool known = true) {
    value = given;
    is_set = known;
  };
  args.bytes_in_use = statistics.bytes_in_use;
  set(args.peak_bytes_in_use, args.peak_bytes_in_use_is_set, statistics.peak_bytes_in_use);
  set(args.num_allocs, args.num_allocs_is_set, statistics.allocations);
  set(args.largest_alloc_size, args.largest_alloc_size_is_set, statistics.largest_allocation);
  set(args.bytes_limit, args.bytes_limit_is_set, limit, limit > 0);
  set(args.bytes_reserved, args.bytes_reserved_is_set, 0, false);
  set(args.peak_bytes_reserved, args.peak_bytes_reserved_is_set, 0, false);
  set(args.bytes_reservable_limit, args.bytes_reservable_limit_is_set, 0, false);
  set(args.largest_free_block_bytes, args.largest_free_block_bytes_is_set, 0, false);
  set(args.pool_bytes, args.pool_bytes_is_set, statistics.bytes_reserved);
  set(args.peak_pool_bytes, args.peak_pool_bytes_is_set, 0, false);
  set_if_known(args, &PJRT_Device_MemoryStats_Args::peak_allocated_bytes, int64_t{0});
  set_if_known(args, &PJRT_Device_MemoryStats_Args::peak_allocated_bytes_is_set, false);
  return {};
}

Status clear_memory_stats(PJRT_Device_ClearMemoryStats_Args& args) {
  args.device->engine->last_device(args.device->place)->memory().clear_statistics();
  return {};
}

// Callers that get no event track nothing.
Status create_async_tracking_event(PJRT_Device_CreateAsyncTrackingEvent_Args& args) {
  args.event = nullptr;
  return {};
}

Status destroy_async_tracking_event(PJRT_AsyncTrackingEvent_Destroy_Args&) { return {}; }

// --- Memories

Status memory_id(PJRT_Memory_Id_Args& args) {
  args.id = unwrap(args.memory).id;
  return {};
}

Status memory_kind(PJRT_Memory_Kind_Args& args) {
  const std::string_view name = runtime::name_of(unwrap(args.memory).kind);
  args.kind = name.data();
  args.kind_size = name.size();
  return {};
}

Status memory_kind_id(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = static_cast<int>(unwrap(args.memory).kind);
  return {};
}

Status memory_debug_string(PJRT_Memory_DebugString_Args& args) {
  args.debug_string = unwrap(args.memory).text.c_str();
  args.debug_string_size = unwrap(args.memory).text.size();
  return {};
}

Status memory_to_string(PJRT_Memory_ToString_Args& args) {
  args.to_string = unwrap(args.memory).text.c_str();
  args.to_string_size = unwrap(args.memory).text.size();
  return {};
}

Status memory_devices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = &unwrap(args.memory).device;
  args.num_devices = 1;
  return {};
}

std::unique_ptr<MemorySpace> make_memory(PJRT_Device& device, runtime::MemoryKind kind, int id) {
  auto memory = std::make_unique<MemorySpace>();
  memory->id = id;
  memory->kind = kind;
  memory->device = &device;
  memory->text = fmt::format("{} memory of {}", runtime::name_of(kind), device.description.text);
  return memory;
}

}  // namespace

MemorySpace::MemorySpace() : PJRT_Memory{&kMemoryFunctions} {}

MemorySpace::~MemorySpace() {
  for (const auto& [key, kept] : user_data) {
    if (kept.destroy != nullptr) kept.destroy(kept.data);
  }
}

void describe(const NamedDevices& devices, size_t i, PJRT_DeviceDescription& description) {
  const backend::DeviceInfo& info = devices.devices[i];
  description.id = static_cast<int>(i);
  description.kind = devices.device_kind(i);
  description.text = fmt::format("TenonDevice(id={}, {})", i, info.name);
  description.debug_text = fmt::format("{}, {}", description.text, devices.description());
  description.backend_device = info.name;
  // A text: jaxlib ends the process at a flag.
  description.attributes = {
      named("backend_device", description.backend_device),
      named("host_visible", info.target.spaces[0].host_visible ? "yes" : "no")};
}

void describe_devices(ClientState& state) {
  for (size_t i = 0; i < state.engine->devices().size(); ++i) {
    auto device = std::make_unique<PJRT_Device>();
    device->engine = state.engine.get();
    device->place = i;
    describe(state.engine->named(), i, device->description);
    for (const auto kind : {runtime::MemoryKind::kDevice, runtime::MemoryKind::kPinnedHost}) {
      const int id = static_cast<int>(state.owned_memories.size());
      state.owned_memories.push_back(make_memory(*device, kind, id));
      device->memories.push_back(state.owned_memories.back().get());
      state.memories.push_back(device->memories.back());
    }
    state.devices.push_back(device.get());
    state.owned_devices.push_back(std::move(device));
  }
}

void add_devices(PJRT_Api& api) {
  api.PJRT_DeviceDescription_Id = entry<description_id>;
  api.PJRT_DeviceDescription_ProcessIndex = entry<description_process_index>;
  api.PJRT_DeviceDescription_Attributes = entry<description_attributes>;
  api.PJRT_DeviceDescription_Kind = entry<description_kind>;
  api.PJRT_DeviceDescription_DebugString = entry<description_debug_string>;
  api.PJRT_DeviceDescription_ToString = entry<description_to_string>;
  api.PJRT_Device_GetDescription = entry<get_description>;
  api.PJRT_Device_IsAddressable = entry<is_addressable>;
  api.PJRT_Device_LocalHardwareId = entry<local_hardware_id>;
  api.PJRT_Device_AddressableMemories = entry<device_memories>;
  api.PJRT_Device_DefaultMemory = entry<default_memory>;
  api.PJRT_Device_MemoryStats = entry<memory_stats>;
  api.PJRT_Device_PoisonExecution = refuse<"Device_PoisonExecution: executions are not poisoned">;
  api.PJRT_Device_CreateAsyncTrackingEvent = entry<create_async_tracking_event>;
  api.PJRT_AsyncTrackingEvent_Destroy = entry<destroy_async_tracking_event>;
  api.PJRT_Device_GetAttributes = entry<device_attributes>;
  api.PJRT_Device_ClearMemoryStats = entry<clear_memory_stats>;
  api.PJRT_Memory_Id = entry<memory_id>;
  api.PJRT_Memory_Kind = entry<memory_kind>;
  api.PJRT_Memory_Kind_Id = entry<memory_kind_id>;
  api.PJRT_Memory_DebugString = entry<memory_debug_string>;
  api.PJRT_Memory_ToString = entry<memory_to_string>;
  api.PJRT_Memory_AddressableByDevices = entry<memory_devices>;
}

}  // namespace tenon::pjrt
