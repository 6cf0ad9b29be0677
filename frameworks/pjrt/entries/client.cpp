// The plug-in's attributes, clients and their create options.
#include <array>
#include <charconv>

#include "core/base/process/environment.h"
#include "core/runtime/client.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"
#include "hlo/artifact/artifact.h"
#include "pjrt_source_hash.h"

namespace tenon::pjrt {
namespace {

// --- The plug-in

Status initialize(PJRT_Plugin_Initialize_Args&) { return {}; }

std::array<int64_t, 3> version_numbers(std::string_view text) {
  std::array<int64_t, 3> numbers = {};
  const char* at = text.data();
  for (int64_t& number : numbers) {
    at = std::from_chars(at, text.data() + text.size(), number).ptr;
    if (at != text.data() + text.size()) ++at;
  }
  return numbers;
}

// Callers send artifacts of the newest version that both sides support.
Status plugin_attributes(PJRT_Plugin_Attributes_Args& args) {
  static const std::array<int64_t, 3> kCurrent = version_numbers(hlo::kNewestStableHlo);
  static const std::array<int64_t, 3> kMinimum = {0, 9, 0};
  static const std::array<PJRT_NamedValue, 2> kAttributes = {
      named("stablehlo_current_version", kCurrent.data(), kCurrent.size()),
      named("stablehlo_minimum_version", kMinimum.data(), kMinimum.size()),
  };
  args.attributes = kAttributes.data();
  args.num_attributes = kAttributes.size();
  return {};
}

// --- Creation

Result<int64_t> integer_of(const PJRT_NamedValue& option, std::string_view name) {
  if (option.type == PJRT_NamedValue_kInt64) return option.int64_value;
  int64_t value = 0;
  if (option.type == PJRT_NamedValue_kString) {
    const char* end = option.string_value + option.value_size;
    const auto [at, error] = std::from_chars(option.string_value, end, value);
    if (error == std::errc() && at == end) return value;
  }
  return invalid_argument("create option '{}' is not a number", name);
}

Result<std::string> text_of(const PJRT_NamedValue& option, std::string_view name) {
  if (option.type != PJRT_NamedValue_kString) {
    return invalid_argument("create option '{}' is not a string", name);
  }
  return std::string(view_of(option.string_value, option.value_size));
}

Result<bool> asks_for_steps(std::string_view profile) {
  if (profile.empty() || profile == "programs") return false;
  if (profile == "steps") return true;
  return invalid_argument("a profile of '{}'; there are 'programs' and 'steps'", profile);
}

}  // namespace

Result<CreateOptions> create_options_of(const PJRT_NamedValue* values, size_t count) {
  CreateOptions all;
  EngineOptions& options = all.engine;
  options.device = environment_or("TENON_DEVICE", kDefaultDevice);
  options.layers = environment_or("TENON_LAYERS", "");
  TENON_ASSIGN(options.device_count, environment_number("TENON_DEVICE_COUNT", 1));
  TENON_ASSIGN(options.time_limit, environment_number("TENON_TIME_LIMIT", 0, {0}, "milliseconds"));
  TENON_ASSIGN(options.profile_steps, asks_for_steps(environment_or("TENON_PROFILE", "")));
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& option = values[i];
    const std::string_view name = view_of(option.name, option.name_size);
    if (name == "device") {
      TENON_ASSIGN(options.device, text_of(option, name));
    } else if (name == "layers") {
      TENON_ASSIGN(options.layers, text_of(option, name));
    } else if (name == "profile") {
      TENON_ASSIGN(const std::string profile, text_of(option, name));
      TENON_ASSIGN(options.profile_steps, asks_for_steps(profile));
    } else if (name == "device_count") {
      TENON_ASSIGN(options.device_count, integer_of(option, name));
    } else if (name == "time_limit") {
      TENON_ASSIGN(options.time_limit, integer_of(option, name));
    } else if (name == "platform_name") {
      TENON_ASSIGN(all.platform_name, text_of(option, name));
      if (all.platform_name.empty()) return invalid_argument("create option '{}' is empty", name);
    }
  }
  return all;
}

std::string platform_version_of(const NamedDevices& named) {
  return fmt::format("tenon {} {}, {}", TENON_VERSION, kCompilerHash, named.description());
}

namespace {

// Layers complete their files when devices close. If work is still in flight when the client is
// destroyed, devices close on threads of their own: the end of the program waits for them.
void close_before_the_end() {
  constexpr int64_t kLongest = 5'000'000'000;
  static const int registered =
      std::atexit([] { static_cast<void>(runtime::await_all_closed(kLongest)); });
  static_cast<void>(registered);
}

Status client_create(PJRT_Client_Create_Args& args) {
  TENON_ASSIGN(const CreateOptions options,
               create_options_of(args.create_options, args.num_options));
  auto state = std::make_shared<ClientState>();
  TENON_ASSIGN(state->engine, Engine::shared(options.engine));
  if (!options.engine.layers.empty()) close_before_the_end();
  state->platform_name = options.platform_name;
  state->platform_version = platform_version_of(state->engine->named());
  describe_devices(*state);
  describe_topology(*state, options);
  args.client = new PJRT_Client{std::move(state)};
  return {};
}

Status client_destroy(PJRT_Client_Destroy_Args& args) {
  delete args.client;
  return {};
}

// --- Getters

Status platform_name(PJRT_Client_PlatformName_Args& args) {
  const std::string& name = args.client->state->platform_name;
  args.platform_name = name.c_str();
  args.platform_name_size = name.size();
  return {};
}

Status platform_version(PJRT_Client_PlatformVersion_Args& args) {
  args.platform_version = args.client->state->platform_version.c_str();
  args.platform_version_size = args.client->state->platform_version.size();
  return {};
}

Status process_index(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = 0;
  return {};
}

Status devices(PJRT_Client_Devices_Args& args) {
  args.devices = args.client->state->devices.data();
  args.num_devices = args.client->state->devices.size();
  return {};
}

Status addressable_devices(PJRT_Client_AddressableDevices_Args& args) {
  args.addressable_devices = args.client->state->devices.data();
  args.num_addressable_devices = args.client->state->devices.size();
  return {};
}

Status lookup_device(PJRT_Client_LookupDevice_Args& args) {
  const auto& devices = args.client->state->devices;
  if (args.id < 0 || static_cast<size_t>(args.id) >= devices.size()) {
    return not_found("there is no device {}; there are {}", args.id, devices.size());
  }
  args.device = devices[static_cast<size_t>(args.id)];
  return {};
}

Status lookup_addressable_device(PJRT_Client_LookupAddressableDevice_Args& args) {
  for (PJRT_Device* device : args.client->state->devices) {
    if (static_cast<int64_t>(device->first()->number()) != args.local_hardware_id) continue;
    args.addressable_device = device;
    return {};
  }
  return not_found("there is no device of hardware id {}", args.local_hardware_id);
}

Status addressable_memories(PJRT_Client_AddressableMemories_Args& args) {
  args.addressable_memories = args.client->state->memories.data();
  args.num_addressable_memories = args.client->state->memories.size();
  return {};
}

Status default_device_assignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const size_t devices = args.client->state->devices.size();
  const int64_t wanted = int64_t{args.num_replicas} * args.num_partitions;
  if (args.num_replicas < 1 || args.num_partitions < 1 || wanted > static_cast<int64_t>(devices) ||
      static_cast<size_t>(wanted) > args.default_assignment_size) {
    return invalid_argument("{} replicas of {} partitions on {} devices", args.num_replicas,
                            args.num_partitions, devices);
  }
  for (int64_t i = 0; i < wanted; ++i) args.default_assignment[i] = static_cast<int>(i);
  return {};
}

Status topology(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &args.client->state->topology;
  return {};
}

// A client of a single process ignores the state of other processes.
Status update_global_process_info(PJRT_Client_UpdateGlobalProcessInfo_Args&) { return {}; }

PJRT_NamedValue value_named(std::string_view name, PJRT_NamedValue_Type type, size_t size) {
  PJRT_NamedValue value = {};
  value.struct_size = sizeof(PJRT_NamedValue);
  value.name = name.data();
  value.name_size = name.size();
  value.type = type;
  value.value_size = size;
  return value;
}

}  // namespace

PJRT_NamedValue named(std::string_view name, std::string_view text) {
  PJRT_NamedValue value = value_named(name, PJRT_NamedValue_kString, text.size());
  value.string_value = text.data();
  return value;
}

PJRT_NamedValue named(std::string_view name, const int64_t* values, size_t count) {
  PJRT_NamedValue value = value_named(name, PJRT_NamedValue_kInt64List, count);
  value.int64_array_value = values;
  return value;
}

PJRT_NamedValue named(std::string_view name, float number) {
  PJRT_NamedValue value = value_named(name, PJRT_NamedValue_kFloat, 1);
  value.float_value = number;
  return value;
}

namespace {

// Transfers take every memory of the host as it is, so that nothing needs to be done.
Status dma_map(PJRT_Client_DmaMap_Args& args) {
  if (args.data == nullptr) return invalid_argument("no memory is given");
  ClientState& state = *args.client->state;
  const std::lock_guard lock(state.mapped_mutex);
  if (state.mapped.insert(args.data).second) return {};
  return Status(ErrorCode::kAlreadyExists, "the memory is mapped already");
}

Status dma_unmap(PJRT_Client_DmaUnmap_Args& args) {
  ClientState& state = *args.client->state;
  const std::lock_guard lock(state.mapped_mutex);
  if (state.mapped.erase(args.data) != 0) return {};
  return not_found("the memory is not mapped");
}

}  // namespace

void add_client(PJRT_Api& api) {
  api.PJRT_Plugin_Initialize = entry<initialize>;
  api.PJRT_Plugin_Attributes = entry<plugin_attributes>;
  api.PJRT_Client_Create = entry<client_create>;
  api.PJRT_Client_Destroy = entry<client_destroy>;
  api.PJRT_Client_PlatformName = entry<platform_name>;
  api.PJRT_Client_ProcessIndex = entry<process_index>;
  api.PJRT_Client_PlatformVersion = entry<platform_version>;
  api.PJRT_Client_Devices = entry<devices>;
  api.PJRT_Client_AddressableDevices = entry<addressable_devices>;
  api.PJRT_Client_LookupDevice = entry<lookup_device>;
  api.PJRT_Client_LookupAddressableDevice = entry<lookup_addressable_device>;
  api.PJRT_Client_AddressableMemories = entry<addressable_memories>;
  api.PJRT_Client_DefaultDeviceAssignment = entry<default_device_assignment>;
  api.PJRT_Client_TopologyDescription = entry<topology>;
  api.PJRT_Client_UpdateGlobalProcessInfo = entry<update_global_process_info>;
  api.PJRT_Client_DmaMap = entry<dma_map>;
  api.PJRT_Client_DmaUnmap = entry<dma_unmap>;
}

}  // namespace tenon::pjrt
