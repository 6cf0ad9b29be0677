// conformance/target/testing/: a PJRT plug-in that misbehaves on demand.
//
// Its programs return their arguments. Create options make it wrong ("fault"), the environment
// gives it another version (FAKE_PJRT_MINOR). Its table ends after the functions of version
// 0.57, and crashes who reads on. Arguments that are too short are refused, as XLA's plug-ins do.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

struct PJRT_Client {
  std::string fault;
};
struct PJRT_Device {};
struct PJRT_DeviceDescription {};
struct PJRT_Event {
  bool fails = false;
};
struct PJRT_LoadedExecutable {
  PJRT_Client* client;
};
struct PJRT_Executable {
  PJRT_Client* client;
};
struct PJRT_Buffer {
  PJRT_Buffer_Type type;
  std::vector<int64_t> dims;
  std::string bytes;
};

namespace {

struct FakeError : PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};

int live = 0;
PJRT_Device device;
PJRT_Device* const devices[] = {&device};
PJRT_DeviceDescription described;

template <class Object>
Object* made(Object object) {
  ++live;
  return new Object(std::move(object));
}
template <class Object>
PJRT_Error* destroyed(Object* object) {
  --live;
  delete object;
  return nullptr;
}

PJRT_Error* error(PJRT_Error_Code code, std::string message) {
  auto* const made_error = made(FakeError());
  made_error->code = code;
  made_error->message = std::move(message);
  return made_error;
}
PJRT_Error* unexpected_size() { return error(PJRT_Error_Code_INVALID_ARGUMENT, "Unexpected size"); }

// Whether `struct_size` does not cover `last`.
template <class Args, class Member>
bool is_short(const Args* args, Member Args::* last) {
  return args->struct_size < static_cast<size_t>(reinterpret_cast<const char*>(&(args->*last) + 1) -
                                                 reinterpret_cast<const char*>(args));
}

PJRT_Error* create(PJRT_Client_Create_Args* args) {
  if (is_short(args, &PJRT_Client_Create_Args::client)) return unexpected_size();
  std::string fault;
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue& option = args->create_options[i];
    const std::string_view name(option.name, option.name_size);
    if (name == "fault") fault.assign(option.string_value, option.value_size);
    if (name == "number" && (option.type != PJRT_NamedValue_kInt64 || option.int64_value != 7)) {
      return error(PJRT_Error_Code_INVALID_ARGUMENT, "the number is not 7");
    }
  }
  if (fault == "create") return error(PJRT_Error_Code_INTERNAL, "no such\ndevice");
  args->client = made(PJRT_Client{fault});
  return nullptr;
}

PJRT_Error* compile(PJRT_Client_Compile_Args* args) {
  if (is_short(args, &PJRT_Client_Compile_Args::executable)) return unexpected_size();
  if (is_short(args->program, &PJRT_Program::format_size)) return unexpected_size();
  const std::string_view code(args->program->code, args->program->code_size);
  const std::string_view format(args->program->format, args->program->format_size);
  if (format != "mlir" || !code.starts_with("module")) {
    return error(PJRT_Error_Code_INVALID_ARGUMENT, "no module");
  }
  if (args->client->fault == "declines") return error(PJRT_Error_Code_UNIMPLEMENTED, "no such op");
  args->executable = made(PJRT_LoadedExecutable{args->client});
  return nullptr;
}

PJRT_Error* buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args* args) {
  if (is_short(args, &PJRT_Client_BufferFromHostBuffer_Args::buffer)) return unexpected_size();
  if (args->data == nullptr) return error(PJRT_Error_Code_INVALID_ARGUMENT, "no data");
  size_t size = args->type == PJRT_Buffer_Type_F32 ? 4 : 1;
  for (size_t i = 0; i < args->num_dims; ++i) size *= static_cast<size_t>(args->dims[i]);
  PJRT_Buffer buffer{args->type, {args->dims, args->dims + args->num_dims}, {}};
  buffer.bytes.assign(static_cast<const char*>(args->data), size);
  // The high bits of these elements mean nothing.
  if (args->type == PJRT_Buffer_Type_S4) {
    for (char& byte : buffer.bytes) byte = static_cast<char>((byte & 0xf) | 0x50);
  }
  args->buffer = made(std::move(buffer));
  args->done_with_host_buffer = made(PJRT_Event());
  return nullptr;
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) {
  if (is_short(args, &PJRT_LoadedExecutable_Execute_Args::execute_device)) return unexpected_size();
  const std::string& fault = args->executable->client->fault;
  if (fault == "execute") return error(PJRT_Error_Code_UNAVAILABLE, "the device is gone");
  for (size_t i = 0; i < args->num_args; ++i) {
    PJRT_Buffer copy = *args->argument_lists[0][i];
    if (fault == "type") copy.type = PJRT_Buffer_Type_S32;
    if (fault == "dims") copy.dims.push_back(1);
    if (fault == "pred") copy.bytes.assign(copy.bytes.size(), 2);
    args->output_lists[0][i] = made(std::move(copy));
  }
  args->device_complete_events[0] = made(PJRT_Event{fault == "event"});
  return nullptr;
}

PJRT_Error* to_host(PJRT_Buffer_ToHostBuffer_Args* args) {
  if (is_short(args, &PJRT_Buffer_ToHostBuffer_Args::event)) return unexpected_size();
  if (args->dst == nullptr) {
    args->dst_size = args->src->bytes.size();
    return nullptr;
  }
  std::memcpy(args->dst, args->src->bytes.data(), args->src->bytes.size());
  args->event = made(PJRT_Event());
  return nullptr;
}

template <class Args>
PJRT_Error* nothing(Args*) {
  return nullptr;
}

void fill_errors_and_events(PJRT_Api& api) {
  api.PJRT_Error_Destroy = [](PJRT_Error_Destroy_Args* args) {
    destroyed(static_cast<FakeError*>(args->error));
  };
  api.PJRT_Error_Message = [](PJRT_Error_Message_Args* args) {
    const auto& message = static_cast<const FakeError*>(args->error)->message;
    args->message = message.data();
    args->message_size = message.size();
  };
  api.PJRT_Error_GetCode = [](PJRT_Error_GetCode_Args* args) -> PJRT_Error* {
    args->code = static_cast<const FakeError*>(args->error)->code;
    return nullptr;
  };
  api.PJRT_Event_Await = [](PJRT_Event_Await_Args* args) {
    return args->event->fails ? error(PJRT_Error_Code_INTERNAL, "too late") : nullptr;
  };
  api.PJRT_Event_Destroy = [](PJRT_Event_Destroy_Args* args) { return destroyed(args->event); };
}

void fill_client(PJRT_Api& api) {
  api.PJRT_Plugin_Initialize = nothing<PJRT_Plugin_Initialize_Args>;
  api.PJRT_Client_Create = create;
  api.PJRT_Client_Destroy = [](PJRT_Client_Destroy_Args* args) { return destroyed(args->client); };
  api.PJRT_Client_AddressableDevices =
      [](PJRT_Client_AddressableDevices_Args* args) -> PJRT_Error* {
    args->addressable_devices = devices;
    args->num_addressable_devices = args->client->fault == "devices" ? 0 : 1;
    return nullptr;
  };
  api.PJRT_Client_PlatformName = [](PJRT_Client_PlatformName_Args* args) -> PJRT_Error* {
    args->platform_name = "fake";
    args->platform_name_size = 4;
    return nullptr;
  };
  api.PJRT_Device_GetDescription = [](PJRT_Device_GetDescription_Args* args) -> PJRT_Error* {
    args->device_description = &described;
    return nullptr;
  };
  api.PJRT_DeviceDescription_Id = nothing<PJRT_DeviceDescription_Id_Args>;
}

void fill_programs(PJRT_Api& api) {
  api.PJRT_Client_Compile = compile;
  api.PJRT_LoadedExecutable_Destroy = [](PJRT_LoadedExecutable_Destroy_Args* args) {
    return destroyed(args->executable);
  };
  api.PJRT_LoadedExecutable_GetExecutable =
      [](PJRT_LoadedExecutable_GetExecutable_Args* args) -> PJRT_Error* {
    args->executable = made(PJRT_Executable{args->loaded_executable->client});
    return nullptr;
  };
  api.PJRT_Executable_Destroy = [](PJRT_Executable_Destroy_Args* args) {
    return destroyed(args->executable);
  };
  api.PJRT_Executable_NumOutputs = [](PJRT_Executable_NumOutputs_Args* args) -> PJRT_Error* {
    args->num_outputs = args->executable->client->fault == "count" ? 3 : 1;
    return nullptr;
  };
  api.PJRT_LoadedExecutable_Execute = execute;
}

void fill_buffers(PJRT_Api& api) {
  api.PJRT_Client_BufferFromHostBuffer = buffer_from_host;
  api.PJRT_Buffer_Destroy = [](PJRT_Buffer_Destroy_Args* args) { return destroyed(args->buffer); };
  api.PJRT_Buffer_ElementType = [](PJRT_Buffer_ElementType_Args* args) -> PJRT_Error* {
    args->type = args->buffer->type;
    return nullptr;
  };
  api.PJRT_Buffer_Dimensions = [](PJRT_Buffer_Dimensions_Args* args) -> PJRT_Error* {
    args->dims = args->buffer->dims.data();
    args->num_dims = args->buffer->dims.size();
    return nullptr;
  };
  api.PJRT_Buffer_ToHostBuffer = to_host;
}

PJRT_Api made_table() {
  PJRT_Api api = {};
  // A function past the end of the table is no function.
  std::memset(static_cast<void*>(&api.PJRT_Client_CreateViewOfDeviceBuffer), 0x5a,
              sizeof api - offsetof(PJRT_Api, PJRT_Client_CreateViewOfDeviceBuffer));
  api.struct_size = offsetof(PJRT_Api, PJRT_Client_CreateViewOfDeviceBuffer);
  api.pjrt_api_version = {sizeof(PJRT_Api_Version), nullptr, PJRT_API_MAJOR, 57};
  if (const char* minor = std::getenv("FAKE_PJRT_MINOR")) {
    api.pjrt_api_version.minor_version = std::atoi(minor);
  }
  fill_errors_and_events(api);
  fill_client(api);
  fill_programs(api);
  fill_buffers(api);
  return api;
}

}  // namespace

extern "C" {
const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api;
  api = made_table();
  return &api;
}
/// The number of objects that are not destroyed yet.
int fake_pjrt_live_objects() { return live; }
}
