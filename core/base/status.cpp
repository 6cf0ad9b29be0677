#include "core/base/status.h"

#include <array>

namespace tenon {

std::string_view error_code_name(ErrorCode code) {
  static constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                              "CANCELLED",
                                                              "UNKNOWN",
                                                              "INVALID_ARGUMENT",
                                                              "DEADLINE_EXCEEDED",
                                                              "NOT_FOUND",
                                                              "ALREADY_EXISTS",
                                                              "PERMISSION_DENIED",
                                                              "RESOURCE_EXHAUSTED",
                                                              "FAILED_PRECONDITION",
                                                              "ABORTED",
                                                              "OUT_OF_RANGE",
                                                              "UNIMPLEMENTED",
                                                              "INTERNAL",
                                                              "UNAVAILABLE",
                                                              "DATA_LOSS",
                                                              "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

Status Status::at(const SourcePosition& position) && {
  const bool is_better = position_.file.empty() || (position.known() && !position_.known());
  if (!ok() && is_better) position_ = position;
  return std::move(*this);
}

Status Status::in_stage(std::string_view stage) && {
  if (!ok() && stage_.empty()) stage_ = stage;
  return std::move(*this);
}

Status Status::with_context(std::string_view context) && {
  if (!ok()) message_ = fmt::format("{}: {}", context, message_);
  return std::move(*this);
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  if (!position_.known()) {
    return position_.file.empty() ? fmt::format("error: {}", message_)
                                  : fmt::format("{}: error: {}", position_.file, message_);
  }
  if (position_.column == 0) {
    return fmt::format("{}:{}: error: {}", position_.file, position_.line, message_);
  }
  return fmt::format("{}:{}:{}: error: {}", position_.file, position_.line, position_.column,
                     message_);
}

}  // namespace tenon
