// conformance/suites/: the programs that run the suites on a device.
//
// Devices that these programs take by name.
#pragma once

#include <memory>
#include <string>

#include "backends/backends.h"
#include "core/backend/registry/registry.h"
#include "core/runtime/client.h"

namespace tenon::conformance {

/// A client of the first device of a backend.
inline Result<std::shared_ptr<runtime::Client>> first_device(
    std::shared_ptr<backend::Backend> backend) {
  runtime::ClientOptions first;
  first.devices = {0};
  return runtime::Client::open(std::move(backend), first);
}

/// The backend with a name ("interp", "cpu", "template") or a plug-in's path. Errors: there is no
/// such backend, or its first device does not open.
inline Result<std::shared_ptr<backend::Backend>> backend_named(const std::string& name) {
  backend::add_backends(backend::Registry::instance());
  TENON_ASSIGN(auto backend, backend::Registry::instance().get(name));
  TENON_ASSIGN(const auto opened, first_device(backend));
  return backend;
}

}  // namespace tenon::conformance
