#include "conformance/target/pjrt_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "core/backend/registry/plugin_file.h"

namespace tenon::conformance {
namespace {

// A function of the table is found by this number, which frameworks/pjrt/c_api/ states.
size_t number_of_function(size_t end) {
  return (end - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void*) - 1;
}

Result<const PJRT_Api*> table_of(const std::string& path) {
  TENON_TRY(backend::check_plugin_file(path));
  // A name without a slash is searched for in the system's folders.
  void* const library =
      dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return failed_precondition("{} cannot be loaded: {}", path, dlerror());
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get == nullptr) {
    return failed_precondition("{} is not a PJRT plug-in: it does not export GetPjrtApi", path);
  }
  const PJRT_Api* const table = get();
  if (table == nullptr) return failed_precondition("{}: GetPjrtApi gives no table", path);
  return table;
}

Status check_version(const PJRT_Api& table) {
  // Every version has the functions up to this one.
  if (table.struct_size < offsetof(PJRT_Api, PJRT_Plugin_Attributes)) {
    return failed_precondition("its table of functions has {} bytes", table.struct_size);
  }
  const PJRT_Api_Version& version = table.pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR || version.minor_version < PjrtApi::kOldestMinor) {
    return failed_precondition("it has version {}.{} of the PJRT C API; {}.{} or newer is needed",
                               version.major_version, version.minor_version, PJRT_API_MAJOR,
                               PjrtApi::kOldestMinor);
  }
  return {};
}

}  // namespace

Result<PjrtApi> PjrtApi::load(const std::string& path) {
  TENON_ASSIGN(const PJRT_Api* const table, table_of(path));
  const PjrtApi api(table);
  Status status = check_version(*table);
  if (status.ok()) {
    auto args = pjrt_args(&PJRT_Plugin_Initialize_Args::extension_start);
    status = api.call(&PJRT_Api::PJRT_Plugin_Initialize, args);
  }
  if (!status.ok()) return Error(std::move(status).with_context(path));
  return api;
}

Status PjrtApi::take(PJRT_Error* error) const {
  if (error == nullptr) return {};
  auto message = pjrt_args(&PJRT_Error_Message_Args::message_size);
  message.error = error;
  table_->PJRT_Error_Message(&message);
  std::string text(message.message == nullptr ? "" : message.message,
                   message.message == nullptr ? 0 : message.message_size);
  std::ranges::replace(text, '\n', ' ');
  auto code = pjrt_args(&PJRT_Error_GetCode_Args::code);
  code.error = error;
  code.code = PJRT_Error_Code_UNKNOWN;
  PJRT_Error* const of_code = table_->PJRT_Error_GetCode(&code);
  for (PJRT_Error* const each : {of_code, error}) {
    auto destroy = pjrt_args(&PJRT_Error_Destroy_Args::error);
    destroy.error = each;
    if (each != nullptr) table_->PJRT_Error_Destroy(&destroy);
  }
  // An error is no success, even with the code of one.
  if (of_code != nullptr || code.code == PJRT_Error_Code_OK) code.code = PJRT_Error_Code_UNKNOWN;
  const auto canonical = static_cast<ErrorCode>(code.code);
  return {canonical, fmt::format("{}: {}", error_code_name(canonical), text)};
}

Status PjrtApi::await(PJRT_Event* event) const {
  if (event == nullptr) return {};
  auto args = pjrt_args(&PJRT_Event_Await_Args::event);
  args.event = event;
  Status status = call(&PJRT_Api::PJRT_Event_Await, args);
  auto destroy = pjrt_args(&PJRT_Event_Destroy_Args::event);
  destroy.event = event;
  const Status destroyed = call(&PJRT_Api::PJRT_Event_Destroy, destroy);
  return status.ok() ? destroyed : status;
}

Status PjrtApi::lacks(size_t end) const {
  return unimplemented("the plug-in lacks function {} of the PJRT C API", number_of_function(end));
}

void PjrtDestroyer::operator()(PJRT_Client* client) const {
  auto args = pjrt_args(&PJRT_Client_Destroy_Args::client);
  args.client = client;
  static_cast<void>(api->call(&PJRT_Api::PJRT_Client_Destroy, args));
}

void PjrtDestroyer::operator()(PJRT_LoadedExecutable* executable) const {
  auto args = pjrt_args(&PJRT_LoadedExecutable_Destroy_Args::executable);
  args.executable = executable;
  static_cast<void>(api->call(&PJRT_Api::PJRT_LoadedExecutable_Destroy, args));
}

void PjrtDestroyer::operator()(PJRT_Executable* executable) const {
  auto args = pjrt_args(&PJRT_Executable_Destroy_Args::executable);
  args.executable = executable;
  static_cast<void>(api->call(&PJRT_Api::PJRT_Executable_Destroy, args));
}

void PjrtDestroyer::operator()(PJRT_Buffer* buffer) const {
  auto args = pjrt_args(&PJRT_Buffer_Destroy_Args::buffer);
  args.buffer = buffer;
  static_cast<void>(api->call(&PJRT_Api::PJRT_Buffer_Destroy, args));
}

}  // namespace tenon::conformance
