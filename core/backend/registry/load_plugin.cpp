// The loading of plug-ins, apart from registry.cpp: the C runtime links it without the backends of
// this process.
#include <dlfcn.h>

#include <filesystem>

#include "core/backend/adapter/c_types.h"
#include "core/backend/registry/plugin_file.h"
#include "core/backend/registry/registry.h"
#include "core/backend/registry/tuning_file.h"

namespace tenon::backend {

Result<std::shared_ptr<Backend>> load_plugin(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return not_found("there is no plug-in {}", path);
  TENON_TRY(check_plugin_file(path));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return failed_precondition("{} cannot be loaded: {}", path, dlerror());
  }
  const auto start = reinterpret_cast<TenonPluginFunction>(dlsym(library, TENON_PLUGIN_SYMBOL));
  if (start == nullptr) {
    dlclose(library);
    return failed_precondition("{} is not a plug-in: it does not export {}", path,
                               TENON_PLUGIN_SYMBOL);
  }
  SinkText text;
  const TenonBackend* table = start(host_services(), text.sink());
  if (table == nullptr) {
    const std::string why = text.take();
    return failed_precondition("{} cannot start: {}", path,
                               why.empty() ? "it gives no reason" : why);
  }
  if (start(host_services(), text.sink()) != table) {
    return failed_precondition("{}: two calls of {} give two tables (B2)", path,
                               TENON_PLUGIN_SYMBOL);
  }
  auto backend = import_backend(table);
  if (backend) return with_tuning_file(*std::move(backend), path);
  return tl::make_unexpected(Status(backend.error()).with_context(path));
}

}  // namespace tenon::backend
