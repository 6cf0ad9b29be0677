#include "conformance/target/pjrt_target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "conformance/target/pjrt_api.h"
#include "frameworks/pjrt/c_api/element_types.h"
#include "frameworks/pjrt/c_api/messages.h"
#include "hlo/text/printer.h"

namespace tenon::conformance {
namespace {

using Buffers = std::vector<PjrtOwned<PJRT_Buffer>>;

// On one line.
std::string text_of_chars(const char* text, size_t size) {
  std::string line = text == nullptr ? "" : std::string(text, size);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string to_text(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return text_of_chars(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return fmt::format("{}", value.int64_value);
    case PJRT_NamedValue_kInt64List:
      return fmt::format("{}", fmt::join(value.int64_array_value,
                                         value.int64_array_value + value.value_size, "."));
    case PJRT_NamedValue_kFloat:
      return fmt::format("{}", value.float_value);
    case PJRT_NamedValue_kBool:
      return value.bool_value ? "true" : "false";
  }
  return "?";
}

void add_attributes(std::vector<std::string>& lines, std::string_view whose,
                    const PJRT_NamedValue* values, size_t count) {
  for (size_t i = 0; values != nullptr && i < count; ++i) {
    lines.push_back(fmt::format("{} {}: {}", whose,
                                text_of_chars(values[i].name, values[i].name_size),
                                to_text(values[i])));
  }
}

PJRT_NamedValue named_value_of(const PjrtOption& option) {
  auto named = pjrt_args(&PJRT_NamedValue::value_size);
  named.name = option.name.data();
  named.name_size = option.name.size();
  named.value_size = 1;
  if (const auto* text = std::get_if<std::string>(&option.value)) {
    named.type = PJRT_NamedValue_kString;
    named.string_value = text->data();
    named.value_size = text->size();
  } else if (const auto* integer = std::get_if<int64_t>(&option.value)) {
    named.type = PJRT_NamedValue_kInt64;
    named.int64_value = *integer;
  } else if (const auto* number = std::get_if<float>(&option.value)) {
    named.type = PJRT_NamedValue_kFloat;
    named.float_value = *number;
  } else {
    named.type = PJRT_NamedValue_kBool;
    named.bool_value = std::get<bool>(option.value);
  }
  return named;
}

// The API gives elements of less than a byte one byte each and leaves the other bits undefined.
// Bytes of a pred other than 0 and 1 have no meaning.
Status check_elements(Literal& literal) {
  const ElementType type = literal.element_type();
  if (is_pred(type)) {
    for (const std::byte byte : literal.data()) {
      if (std::to_integer<int>(byte) > 1) {
        return internal_error("a pred has the byte {}", std::to_integer<int>(byte));
      }
    }
    return {};
  }
  const int unused = 8 - bit_width(type);
  if (unused <= 0) return {};
  for (std::byte& byte : literal.mutable_data()) {
    const auto low = static_cast<uint8_t>(std::to_integer<uint8_t>(byte) << unused);
    byte = is_signed_integer(type) ? static_cast<std::byte>(static_cast<int8_t>(low) >> unused)
                                   : static_cast<std::byte>(low >> unused);
  }
  return {};
}

class PjrtTarget : public Target {
 public:
  PjrtTarget(std::string path, PjrtApi api) : path_(std::move(path)), api_(api) {}

  Status open(const std::vector<PjrtOption>& options);
  std::vector<std::string> description() const override;
  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override;
  bool counts_steps() const override { return false; }

 private:
  template <class Object>
  PjrtOwned<Object> own(Object* object) const {
    return PjrtOwned<Object>(object, PjrtDestroyer{&api_});
  }
  Status check_type(ElementType type) const;
  Result<PjrtOwned<PJRT_LoadedExecutable>> compile(const hlo::Module& module) const;
  Status check_result_count(PJRT_LoadedExecutable* executable, size_t count) const;
  Result<PjrtOwned<PJRT_Buffer>> to_device(const Literal& argument) const;
  Result<Buffers> execute(PJRT_LoadedExecutable* executable, const Buffers& arguments,
                          size_t results) const;
  Result<Literal> to_host(PJRT_Buffer* buffer, const Shape& shape) const;
  Status check_shape(PJRT_Buffer* buffer, const Shape& shape) const;

  std::string path_;
  PjrtApi api_;
  PjrtOwned<PJRT_Client> client_;
  PJRT_Device* device_ = nullptr;
  PJRT_DeviceDescription* described_ = nullptr;
  std::string compile_options_;
};

// --- The client

Status PjrtTarget::open(const std::vector<PjrtOption>& options) {
  std::vector<PJRT_NamedValue> values;
  for (const PjrtOption& option : options) values.push_back(named_value_of(option));
  auto create = pjrt_args(&PJRT_Client_Create_Args::kv_try_get_user_arg);
  create.create_options = values.data();
  create.num_options = values.size();
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Client_Create, create));
  client_ = own(create.client);
  auto devices = pjrt_args(&PJRT_Client_AddressableDevices_Args::num_addressable_devices);
  devices.client = create.client;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Client_AddressableDevices, devices));
  if (devices.num_addressable_devices == 0) {
    return failed_precondition("the plug-in has no device that this process addresses");
  }
  device_ = devices.addressable_devices[0];
  auto describe = pjrt_args(&PJRT_Device_GetDescription_Args::device_description);
  describe.device = device_;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Device_GetDescription, describe));
  described_ = describe.device_description;
  auto id = pjrt_args(&PJRT_DeviceDescription_Id_Args::id);
  id.device_description = described_;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_DeviceDescription_Id, id));
  compile_options_ = pjrt::compile_options_for(id.id);
  return {};
}

// A line is left out if the plug-in does not tell.
std::vector<std::string> PjrtTarget::description() const {
  std::vector<std::string> lines = {
      fmt::format("PJRT plug-in {}", path_),
      fmt::format("PJRT C API {}.{}", api_.version().major_version, api_.version().minor_version)};
  auto platform = pjrt_args(&PJRT_Client_PlatformName_Args::platform_name_size);
  platform.client = client_.get();
  if (api_.call(&PJRT_Api::PJRT_Client_PlatformName, platform).ok()) {
    lines.push_back("platform: " +
                    text_of_chars(platform.platform_name, platform.platform_name_size));
  }
  auto version = pjrt_args(&PJRT_Client_PlatformVersion_Args::platform_version_size);
  version.client = client_.get();
  if (api_.call(&PJRT_Api::PJRT_Client_PlatformVersion, version).ok()) {
    lines.push_back("platform version: " +
                    text_of_chars(version.platform_version, version.platform_version_size));
  }
  auto kind = pjrt_args(&PJRT_DeviceDescription_Kind_Args::device_kind_size);
  kind.device_description = described_;
  if (api_.call(&PJRT_Api::PJRT_DeviceDescription_Kind, kind).ok()) {
    lines.push_back("device kind: " + text_of_chars(kind.device_kind, kind.device_kind_size));
  }
  auto plugin = pjrt_args(&PJRT_Plugin_Attributes_Args::num_attributes);
  if (api_.call(&PJRT_Api::PJRT_Plugin_Attributes, plugin).ok()) {
    add_attributes(lines, "plug-in attribute", plugin.attributes, plugin.num_attributes);
  }
  auto device = pjrt_args(&PJRT_DeviceDescription_Attributes_Args::attributes);
  device.device_description = described_;
  if (api_.call(&PJRT_Api::PJRT_DeviceDescription_Attributes, device).ok()) {
    add_attributes(lines, "device attribute", device.attributes, device.num_attributes);
  }
  return lines;
}

// --- Programs

Status PjrtTarget::check_type(ElementType type) const {
  const int minor = pjrt::first_minor_of(pjrt::buffer_type_of(type));
  if (api_.version().minor_version >= minor) return {};
  return unimplemented("{} came with version 0.{} of the PJRT C API", name_of(type), minor);
}

Result<TargetRun> PjrtTarget::run(const hlo::Module& module, std::span<const Literal> arguments) {
  const std::vector<hlo::Type> types = module.entry()->result_types();
  for (const Literal& argument : arguments) TENON_TRY(check_type(argument.element_type()));
  for (const hlo::Type& type : types) TENON_TRY(check_type(type.element_type()));
  TENON_ASSIGN(const auto executable, compile(module));
  TENON_TRY(check_result_count(executable.get(), types.size()));
  Buffers inputs;
  for (const Literal& argument : arguments) {
    TENON_ASSIGN(auto buffer, to_device(argument));
    inputs.push_back(std::move(buffer));
  }
  TENON_ASSIGN(const Buffers outputs, execute(executable.get(), inputs, types.size()));
  TargetRun run;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TENON_ASSIGN(Literal result, to_host(outputs[i].get(), types[i].shape()));
    run.results.push_back(std::move(result));
  }
  return run;
}

Result<PjrtOwned<PJRT_LoadedExecutable>> PjrtTarget::compile(const hlo::Module& module) const {
  constexpr std::string_view kFormat = "mlir";
  std::string text = hlo::print_module(module, {hlo::TextForm::kStableHlo});
  auto program = pjrt_args(&PJRT_Program::format_size);
  program.code = text.data();
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  auto args = pjrt_args(&PJRT_Client_Compile_Args::executable);
  args.client = client_.get();
  args.program = &program;
  args.compile_options = compile_options_.data();
  args.compile_options_size = compile_options_.size();
  Status status = api_.call(&PJRT_Api::PJRT_Client_Compile, args);
  if (!status.ok()) return Error(std::move(status).with_context("compile"));
  return own(args.executable);
}

Status PjrtTarget::check_result_count(PJRT_LoadedExecutable* executable, size_t count) const {
  auto get = pjrt_args(&PJRT_LoadedExecutable_GetExecutable_Args::executable);
  get.loaded_executable = executable;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, get));
  const auto owned = own(get.executable);
  auto args = pjrt_args(&PJRT_Executable_NumOutputs_Args::num_outputs);
  args.executable = get.executable;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Executable_NumOutputs, args));
  if (args.num_outputs == count) return {};
  return internal_error("the executable has {} results in place of {}", args.num_outputs, count);
}

Result<PjrtOwned<PJRT_Buffer>> PjrtTarget::to_device(const Literal& argument) const {
  static constexpr char kNothing = 0;  // An array without elements has an address too.
  const Dims& dims = argument.shape().dims();
  auto args = pjrt_args(&PJRT_Client_BufferFromHostBuffer_Args::buffer);
  args.client = client_.get();
  args.data =
      argument.data().empty() ? static_cast<const void*>(&kNothing) : argument.data().data();
  args.type = pjrt::buffer_type_of(argument.element_type());
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device_;
  Status status = api_.call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, args);
  if (!status.ok()) return Error(std::move(status).with_context("copy to the device"));
  auto buffer = own(args.buffer);
  status = api_.await(args.done_with_host_buffer);
  if (!status.ok()) return Error(std::move(status).with_context("copy to the device"));
  return buffer;
}

Result<Buffers> PjrtTarget::execute(PJRT_LoadedExecutable* executable, const Buffers& arguments,
                                    size_t results) const {
  std::vector<PJRT_Buffer*> inputs;
  for (const auto& argument : arguments) inputs.push_back(argument.get());
  std::vector<PJRT_Buffer*> outputs(results, nullptr);
  PJRT_Buffer* const* const input_list = inputs.data();
  PJRT_Buffer** const output_list = outputs.data();
  PJRT_Event* complete = nullptr;
  auto options = pjrt_args(&PJRT_ExecuteOptions::num_hlo_output_callbacks);
  options.launch_id = 1;
  auto args = pjrt_args(&PJRT_LoadedExecutable_Execute_Args::execute_device);
  args.executable = executable;
  args.options = &options;
  args.argument_lists = &input_list;
  args.num_devices = 1;
  args.num_args = inputs.size();
  args.output_lists = &output_list;
  args.device_complete_events = &complete;
  Status status = api_.call(&PJRT_Api::PJRT_LoadedExecutable_Execute, args);
  if (!status.ok()) return Error(std::move(status).with_context("execute"));
  Buffers owned;
  for (PJRT_Buffer* const output : outputs) owned.push_back(own(output));
  status = api_.await(complete);
  if (!status.ok()) return Error(std::move(status).with_context("execute"));
  for (size_t i = 0; i < results; ++i) {
    if (outputs[i] == nullptr) return internal_error("execution gave no result {}", i);
  }
  return owned;
}

Status PjrtTarget::check_shape(PJRT_Buffer* buffer, const Shape& shape) const {
  auto type = pjrt_args(&PJRT_Buffer_ElementType_Args::type);
  type.buffer = buffer;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Buffer_ElementType, type));
  auto dims = pjrt_args(&PJRT_Buffer_Dimensions_Args::num_dims);
  dims.buffer = buffer;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Buffer_Dimensions, dims));
  if (type.type != pjrt::buffer_type_of(shape.element_type())) {
    return internal_error("a result of {} has the element type {} of the PJRT C API",
                          shape.to_string(), static_cast<int>(type.type));
  }
  const std::span<const int64_t> found(dims.dims, dims.num_dims);
  if (!std::ranges::equal(found, shape.dims())) {
    return internal_error("a result of {} has the dimensions {}", shape.to_string(),
                          fmt::join(found, ", "));
  }
  return {};
}

Result<Literal> PjrtTarget::to_host(PJRT_Buffer* buffer, const Shape& shape) const {
  TENON_TRY(check_shape(buffer, shape));
  // Without a layout the result would come in that of the device.
  std::vector<int64_t> minor_to_major(shape.dims().size());
  std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
  auto layout = pjrt_args(&PJRT_Buffer_MemoryLayout::type);
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = pjrt_args(&PJRT_Buffer_MemoryLayout_Tiled::num_tiles);
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  auto args = pjrt_args(&PJRT_Buffer_ToHostBuffer_Args::event);
  args.src = buffer;
  args.host_layout = &layout;
  TENON_TRY(api_.call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, args));
  Literal literal{shape};
  if (args.dst_size < literal.data().size()) {
    return internal_error("{} takes {} bytes on the host, in place of {}", shape.to_string(),
                          args.dst_size, literal.data().size());
  }
  std::vector<std::byte> bytes(std::max<size_t>(args.dst_size, 1));
  args.dst = bytes.data();
  Status status = api_.call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, args);
  if (status.ok()) status = api_.await(args.event);
  if (!status.ok()) return Error(std::move(status).with_context("copy to the host"));
  std::ranges::copy_n(bytes.begin(), static_cast<ptrdiff_t>(literal.data().size()),
                      literal.mutable_data().begin());
  TENON_TRY(check_elements(literal));
  return literal;
}

template <class Number>
Result<PjrtOption> numeric_option(std::string_view name, std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return PjrtOption{std::string(name), number};
  }
  return invalid_argument("option {}: '{}' is not such a number", name, text);
}

}  // namespace

Result<PjrtOption> parse_pjrt_option(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return invalid_argument("'{}' is not NAME=VALUE or NAME:TYPE=VALUE", text);
  }
  const std::string_view value = text.substr(equals + 1);
  const std::string_view key = text.substr(0, equals);
  const size_t colon = key.find(':');
  const std::string_view name = key.substr(0, colon);
  const std::string_view type = colon == std::string_view::npos ? "string" : key.substr(colon + 1);
  if (type == "string") return PjrtOption{std::string(name), std::string(value)};
  if (type == "int") return numeric_option<int64_t>(name, value);
  if (type == "float") return numeric_option<float>(name, value);
  if (type == "bool" && (value == "true" || value == "false")) {
    return PjrtOption{std::string(name), value == "true"};
  }
  return invalid_argument(
      "option {}: '{}' is not of the type {}; types are string, int, float, bool", name, value,
      type);
}

Result<std::unique_ptr<Target>> make_pjrt_target(const std::string& path,
                                                 const std::vector<PjrtOption>& options) {
  TENON_ASSIGN(const PjrtApi api, PjrtApi::load(path));
  auto target = std::make_unique<PjrtTarget>(path, api);
  Status status = target->open(options);
  if (!status.ok()) return Error(std::move(status).with_context(path));
  return target;
}

}  // namespace tenon::conformance
