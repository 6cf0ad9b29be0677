#include "frameworks/onnxruntime/src/device.h"

#include <cstring>
#include <map>
#include <mutex>
#include <protozero/pbf_writer.hpp>

#include "frameworks/onnxruntime/src/ort_runtime.h"
#include "frameworks/pjrt/c_api/element_types.h"
#include "frameworks/pjrt/c_api/messages.h"

namespace tenon::ort {

using client::sized;

std::shared_ptr<const ProviderDevice> ProviderDevice::open(const ProviderOptions& options,
                                                           const std::string& default_library) {
  const std::string library =
      options.plugin_library.empty() ? default_library : options.plugin_library;
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::weak_ptr<const ProviderDevice>> opened;
  const std::lock_guard lock(mutex);
  auto& known = opened[{library, options.device, options.layers, options.time_limit}];
  if (auto shared = known.lock()) return shared;

  std::shared_ptr<ProviderDevice> device(new ProviderDevice);
  device->plugin_ = client::Plugin::load(library);
  std::vector<PJRT_NamedValue> values;
  const auto add = [&](std::string_view name, const std::string& text) {
    if (text.empty()) return;
    auto& value = values.emplace_back(sized<PJRT_NamedValue>());
    value.name = name.data();
    value.name_size = name.size();
    value.type = PJRT_NamedValue_kString;
    value.string_value = text.c_str();
    value.value_size = text.size();
  };
  add("device", options.device);
  add("layers", options.layers);
  add("time_limit", options.time_limit);
  auto created = sized<PJRT_Client_Create_Args>();
  created.create_options = values.data();
  created.num_options = values.size();
  device->plugin_->call(&PJRT_Api::PJRT_Client_Create, created);
  device->client_ = OwnedClient(device->plugin_.get(), created.client);

  auto devices = sized<PJRT_Client_AddressableDevices_Args>();
  devices.client = created.client;
  device->plugin_->call(&PJRT_Api::PJRT_Client_AddressableDevices, devices);
  if (devices.num_addressable_devices == 0) {
    throw OrtFailure{not_found("'{}' has no devices", options.device)};
  }
  device->device_ = devices.addressable_devices[0];
  auto description = sized<PJRT_Device_GetDescription_Args>();
  description.device = device->device_;
  device->plugin_->call(&PJRT_Api::PJRT_Device_GetDescription, description);
  auto id = sized<PJRT_DeviceDescription_Id_Args>();
  id.device_description = description.device_description;
  device->plugin_->call(&PJRT_Api::PJRT_DeviceDescription_Id, id);
  device->id_ = id.id;
  auto version = sized<PJRT_Client_PlatformVersion_Args>();
  version.client = created.client;
  device->plugin_->call(&PJRT_Api::PJRT_Client_PlatformVersion, version);
  device->version_.assign(version.platform_version, version.platform_version_size);
  auto attributes = sized<PJRT_DeviceDescription_Attributes_Args>();
  attributes.device_description = description.device_description;
  device->plugin_->call(&PJRT_Api::PJRT_DeviceDescription_Attributes, attributes);
  for (const PJRT_NamedValue& each : std::span(attributes.attributes, attributes.num_attributes)) {
    if (std::string_view(each.name, each.name_size) != "host_visible") continue;
    device->has_own_memory_ = std::string_view(each.string_value, each.value_size) == "no";
  }
  known = device;
  return device;
}

OwnedBuffer ProviderDevice::put(const HostTensor& array, OwnedEvent* done) const {
  auto args = sized<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client_.get();
  args.data = array.data;
  args.type = pjrt::buffer_type_of(array.type);
  args.dims = array.dims.data();
  args.num_dims = array.dims.size();
  args.host_buffer_semantics = done != nullptr
                                   ? PJRT_HostBufferSemantics_kImmutableZeroCopy
                                   : PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.device = device_;
  plugin_->call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, args);
  OwnedBuffer buffer(plugin_.get(), args.buffer);
  if (done != nullptr) {
    *done = OwnedEvent(plugin_.get(), args.done_with_host_buffer);
  } else {
    plugin_->await(args.done_with_host_buffer);
  }
  return buffer;
}

OwnedEvent ProviderDevice::get(PJRT_Buffer* buffer, void* data, size_t size) const {
  auto on_cpu = sized<PJRT_Buffer_IsOnCpu_Args>();
  on_cpu.buffer = buffer;
  plugin_->call(&PJRT_Api::PJRT_Buffer_IsOnCpu, on_cpu);
  if (on_cpu.is_on_cpu) {
    await(buffer);
    auto pointer = sized<PJRT_Buffer_UnsafePointer_Args>();
    pointer.buffer = buffer;
    plugin_->call(&PJRT_Api::PJRT_Buffer_UnsafePointer, pointer);
    std::memcpy(data, reinterpret_cast<const void*>(pointer.buffer_pointer), size);
    return {};
  }
  auto copy = sized<PJRT_Buffer_ToHostBuffer_Args>();
  copy.src = buffer;
  copy.dst = data;
  copy.dst_size = size;
  plugin_->call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, copy);
  return {plugin_.get(), copy.event};
}

OwnedBuffer ProviderDevice::bitcast(PJRT_Buffer* buffer, ElementType type, const Dims& dims) const {
  auto args = sized<PJRT_Buffer_Bitcast_Args>();
  args.buffer = buffer;
  args.element_type = pjrt::buffer_type_of(type);
  args.dims = dims.data();
  args.num_dims = dims.size();
  plugin_->call(&PJRT_Api::PJRT_Buffer_Bitcast, args);
  return {plugin_.get(), args.out_buffer};
}

void ProviderDevice::await(PJRT_Buffer* buffer) const {
  auto ready = sized<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer;
  plugin_->call(&PJRT_Api::PJRT_Buffer_ReadyEvent, ready);
  plugin_->await(ready.event);
}

std::string ProviderDevice::compile_options(const ProviderOptions& options) const {
  // CompileOptionsProto, an entry of its map env_option_overrides, and the value in it.
  constexpr uint32_t kOverrides = 7, kKey = 1, kValue = 2, kBoolValue = 2;
  std::string bytes = pjrt::compile_options_for(id_);
  const auto add_flag = [&](const char* name) {
    std::string value, entry;
    protozero::pbf_writer(value).add_bool(kBoolValue, true);
    protozero::pbf_writer writer(entry);
    writer.add_string(kKey, name);
    writer.add_message(kValue, value);
    protozero::pbf_writer(bytes).add_message(kOverrides, entry);
  };
  if (options.strict_device) add_flag("tenon_strict");
  if (options.native_math) add_flag("tenon_native_math");
  return bytes;
}

OwnedExecutable ProviderDevice::compile(std::string_view program,
                                        const std::string& options) const {
  auto described = sized<PJRT_Program>();
  described.code = const_cast<char*>(program.data());
  described.code_size = program.size();
  constexpr std::string_view kFormat = "mlir";
  described.format = kFormat.data();
  described.format_size = kFormat.size();
  auto args = sized<PJRT_Client_Compile_Args>();
  args.client = client_.get();
  args.program = &described;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  plugin_->call(&PJRT_Api::PJRT_Client_Compile, args);
  return {plugin_.get(), args.executable};
}

OwnedExecutable ProviderDevice::load(std::string_view serialized,
                                     const std::string& options) const {
  auto args = sized<PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client_.get();
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  args.overridden_serialized_compile_options = options.data();
  args.overridden_serialized_compile_options_size = options.size();
  plugin_->call(&PJRT_Api::PJRT_Executable_DeserializeAndLoad, args);
  return {plugin_.get(), args.loaded_executable};
}

std::string ProviderDevice::serialize(PJRT_LoadedExecutable* executable) const {
  auto inner = sized<PJRT_LoadedExecutable_GetExecutable_Args>();
  inner.loaded_executable = executable;
  plugin_->call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, inner);
  const Owned<PJRT_Executable, PJRT_Executable_Destroy_Args,
              &PJRT_Executable_Destroy_Args::executable, &PJRT_Api::PJRT_Executable_Destroy>
      owned(plugin_.get(), inner.executable);
  auto args = sized<PJRT_Executable_Serialize_Args>();
  args.executable = owned.get();
  plugin_->call(&PJRT_Api::PJRT_Executable_Serialize, args);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

}  // namespace tenon::ort
