// The devices that the programs of this folder take by name.
#pragma once

#include <memory>
#include <string>

#include "backends/backends.h"
#include "core/backend/registry.h"

namespace tenon::conformance {

/// "interp", "cpu", "template", the path of a plug-in.
inline Result<std::shared_ptr<backend::Backend>> backend_named(const std::string& name) {
  backend::add_backends(backend::Registry::instance());
  return backend::Registry::instance().get(name);
}

}  // namespace tenon::conformance
