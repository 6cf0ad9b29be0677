#include "core/runtime/foreign/host_functions.h"

namespace tenon::runtime {

HostFunctions& HostFunctions::instance() {
  // Never destroyed: threads of devices may outlive static objects.
  static auto& functions = *new HostFunctions();
  return functions;
}

Status HostFunctions::add(std::string_view platform, std::string_view name, HostFunction function) {
  const std::lock_guard lock(mutex_);
  HostFunctionTable& table = platforms_[std::string(platform)];
  if (table.emplace(name, std::move(function)).second) return {};
  return Status(ErrorCode::kAlreadyExists,
                fmt::format("platform {} has a function @{} already", platform, name));
}

HostFunctionTable HostFunctions::of(std::string_view platform) const {
  const std::lock_guard lock(mutex_);
  const auto found = platforms_.find(platform);
  return found == platforms_.end() ? HostFunctionTable() : found->second;
}

}  // namespace tenon::runtime
