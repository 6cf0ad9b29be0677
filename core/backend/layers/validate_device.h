// An open device within the layer `validate`. Of validate.cpp.
#pragma once

#include <functional>

#include "core/backend/backend.h"

namespace tenon::backend {

/// What breaks a rule, as an error of the call.
template <class... Args>
Status broken(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
  return Status(
      internal_error("validate: {}: {}", rule, fmt::format(format, std::forward<Args>(args)...)));
}

/// `closed` is called when the device has been closed.
std::unique_ptr<Device> make_validate_device(std::unique_ptr<Device> inner,
                                             const TargetInfo& target,
                                             std::function<void()> closed);

}  // namespace tenon::backend
