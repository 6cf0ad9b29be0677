#include "client.h"

#include <array>

namespace tenon::python {

PluginClient::PluginClient(std::shared_ptr<const Plugin> plugin, const Options& options)
    : plugin_(std::move(plugin)) {
  std::vector<PJRT_NamedValue> values;
  for (const auto& [name, value] : options) {
    auto& named = values.emplace_back(sized<PJRT_NamedValue>());
    named.name = name.c_str();
    named.name_size = name.size();
    named.value_size = 1;
    if (const auto* text = std::get_if<std::string>(&value)) {
      named.type = PJRT_NamedValue_kString;
      named.string_value = text->c_str();
      named.value_size = text->size();
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      named.type = PJRT_NamedValue_kInt64;
      named.int64_value = *integer;
    } else if (const auto* real = std::get_if<double>(&value)) {
      named.type = PJRT_NamedValue_kFloat;
      named.float_value = static_cast<float>(*real);
    } else {
      named.type = PJRT_NamedValue_kBool;
      named.bool_value = std::get<bool>(value);
    }
  }
  auto args = sized<PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  {
    const nb::gil_scoped_release unlocked;
    plugin_->call(&PJRT_Api::PJRT_Client_Create, args);
  }
  handle_ = args.client;
  auto devices = sized<PJRT_Client_AddressableDevices_Args>();
  devices.client = handle_;
  plugin_->call(&PJRT_Api::PJRT_Client_AddressableDevices, devices);
  devices_.assign(devices.addressable_devices,
                  devices.addressable_devices + devices.num_addressable_devices);
}

PluginClient::~PluginClient() {
  auto args = sized<PJRT_Client_Destroy_Args>();
  args.client = handle_;
  plugin_->end(&PJRT_Api::PJRT_Client_Destroy, args);
}

PJRT_Device* PluginClient::device(size_t index) const {
  if (index >= devices_.size()) {
    throw nb::index_error(
        ("there is no device " + std::to_string(index) + ", but " + std::to_string(devices_.size()))
            .c_str());
  }
  return devices_[index];
}

namespace {

PJRT_DeviceDescription* description_of(const ClientDevice& device) {
  auto args = sized<PJRT_Device_GetDescription_Args>();
  args.device = device.client->device(device.index);
  device.client->plugin().call(&PJRT_Api::PJRT_Device_GetDescription, args);
  return args.device_description;
}

nb::object value_of(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return text_of({value.string_value, value.value_size});
    case PJRT_NamedValue_kInt64:
      return nb::int_(value.int64_value);
    case PJRT_NamedValue_kFloat:
      return nb::float_(value.float_value);
    case PJRT_NamedValue_kBool:
      return nb::bool_(value.bool_value);
    case PJRT_NamedValue_kInt64List: {
      nb::list list;
      for (size_t i = 0; i < value.value_size; ++i) list.append(value.int64_array_value[i]);
      return list;
    }
  }
  return nb::none();
}

}  // namespace

int ClientDevice::id() const {
  auto args = sized<PJRT_DeviceDescription_Id_Args>();
  args.device_description = description_of(*this);
  client->plugin().call(&PJRT_Api::PJRT_DeviceDescription_Id, args);
  return args.id;
}

nb::str ClientDevice::kind() const {
  auto args = sized<PJRT_DeviceDescription_Kind_Args>();
  args.device_description = description_of(*this);
  client->plugin().call(&PJRT_Api::PJRT_DeviceDescription_Kind, args);
  return text_of({args.device_kind, args.device_kind_size});
}

nb::str ClientDevice::name() const {
  auto args = sized<PJRT_DeviceDescription_ToString_Args>();
  args.device_description = description_of(*this);
  client->plugin().call(&PJRT_Api::PJRT_DeviceDescription_ToString, args);
  return text_of({args.to_string, args.to_string_size});
}

nb::dict ClientDevice::attributes() const {
  auto args = sized<PJRT_DeviceDescription_Attributes_Args>();
  args.device_description = description_of(*this);
  client->plugin().call(&PJRT_Api::PJRT_DeviceDescription_Attributes, args);
  nb::dict dict;
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& each = args.attributes[i];
    dict[text_of({each.name, each.name_size})] = value_of(each);
  }
  return dict;
}

}  // namespace tenon::python
