// The plug-in's only symbol.
#include "backends/backends.h"
#include "core/backend/registry/registry.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/ffi/extension.h"

namespace tenon::pjrt {
namespace {

// Callers of a newer version may read beyond the end before they check the size.
struct PaddedApi {
  PJRT_Api api;
  std::array<void*, 8> behind;
};

PaddedApi make_table() {
  PaddedApi table = {};
  table.api.struct_size = sizeof(PJRT_Api);
  table.api.extension_start = profiler_extension(
      memory_descriptions_extension(layouts_extension(shardings_extension(ffi_extensions()))));
  table.api.pjrt_api_version.struct_size = sizeof(PJRT_Api_Version);
  table.api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  table.api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  add_errors(table.api);
  add_client(table.api);
  add_devices(table.api);
  add_topology(table.api);
  add_buffers(table.api);
  add_transfers(table.api);
  add_late_buffers(table.api);
  add_host_transfers(table.api);
  add_compile(table.api);
  add_executables(table.api);
  add_execution(table.api);
  backend::add_backends(backend::Registry::instance());
  return table;
}

}  // namespace
}  // namespace tenon::pjrt

extern "C" const PJRT_Api* GetPjrtApi() {
  static const tenon::pjrt::PaddedApi table = tenon::pjrt::make_table();
  return &table.api;
}
