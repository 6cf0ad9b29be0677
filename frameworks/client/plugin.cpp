#include "frameworks/client/plugin.h"

#include <dlfcn.h>

namespace tenon::client {
namespace {

constexpr int kFailedPrecondition = 9;
constexpr int kOldestMinor = 57;  // Functions were only appended to the table since then.

}  // namespace

std::shared_ptr<const Plugin> Plugin::load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw PluginError(kFailedPrecondition, dlerror());
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  const PJRT_Api* const table = get == nullptr ? nullptr : get();
  if (table == nullptr) {
    throw PluginError(kFailedPrecondition, path + " is not a PJRT plug-in: it gives no table");
  }
  const PJRT_Api_Version& version = table->pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR || version.minor_version < kOldestMinor) {
    throw PluginError(kFailedPrecondition, path + " has version " +
                                               std::to_string(version.major_version) + "." +
                                               std::to_string(version.minor_version) +
                                               " of the PJRT C API, which is not supported");
  }
  std::shared_ptr<const Plugin> plugin(new Plugin(table));
  auto args = sized<PJRT_Plugin_Initialize_Args>();
  plugin->call(&PJRT_Api::PJRT_Plugin_Initialize, args);
  return plugin;
}

void Plugin::check(PJRT_Error* error) const {
  if (error == nullptr) return;
  auto message = sized<PJRT_Error_Message_Args>();
  message.error = error;
  table_->PJRT_Error_Message(&message);
  const std::string text(message.message, message.message_size);
  auto code = sized<PJRT_Error_GetCode_Args>();
  code.error = error;
  drop(table_->PJRT_Error_GetCode(&code));
  drop(error);
  throw PluginError(static_cast<int>(code.code), text);
}

void Plugin::drop(PJRT_Error* error) const noexcept {
  if (error == nullptr) return;
  auto args = sized<PJRT_Error_Destroy_Args>();
  args.error = error;
  table_->PJRT_Error_Destroy(&args);
}

void Plugin::await(PJRT_Event* event) const {
  if (event == nullptr) return;
  auto args = sized<PJRT_Event_Await_Args>();
  args.event = event;
  PJRT_Error* const error = table_->PJRT_Event_Await(&args);
  auto destroy = sized<PJRT_Event_Destroy_Args>();
  destroy.event = event;
  end(&PJRT_Api::PJRT_Event_Destroy, destroy);
  check(error);
}

}  // namespace tenon::client
