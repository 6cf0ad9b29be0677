// The devices that the programs of this folder take by name.
#pragma once

#include <memory>
#include <string>

#include "backends/template/template.h"
#include "core/backend/registry.h"

namespace tenon::conformance {

/// "interp", "template", the path of a plug-in.
inline Result<std::shared_ptr<backend::Backend>> backend_named(const std::string& name) {
  backend::Registry& registry = backend::Registry::instance();
  static_cast<void>(registry.add("template", [] {
    return Result<std::shared_ptr<backend::Backend>>(backend::make_template_backend());
  }));
  return registry.get(name);
}

}  // namespace tenon::conformance
